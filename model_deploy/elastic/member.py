"""`Member`: one worker of an elastic run, which reads the world file and writes its own marks."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from model_deploy.cluster import (
    WORKER,
    WORLD_FILE,
    Cluster,
    World,
    all_wait,
    begun_file,
    read_world,
    ready_file,
)
from model_deploy.commands import replaced_file
from model_deploy.config import DeploymentConfig
from model_deploy.training import say

# Seconds between two looks at the world file of a worker that makes no steps.
_POLL_SECS = 0.05
_REPORT_SECS = 5.0


class Member:
    """One worker of an elastic run.

    Args:
      path: path of the world file.
      worker: the number of this worker.

    Raises:
      ValueError: if `worker` is not a whole number.
    """

    def __init__(self, path: str | os.PathLike[str], worker: int) -> None:
        if isinstance(worker, bool) or not isinstance(worker, int) or worker < 0:
            raise ValueError(f"worker must be a whole number, got {worker!r}")
        self.path = os.fspath(path)
        self.worker = worker
        self._broken: str | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Member":
        """Creates the member that the environment variables name.

        Raises:
          ValueError: naming the variable that is missing or not a number.
        """
        for name in (WORLD_FILE, WORKER):
            if not environ.get(name):
                raise ValueError(
                    f"{name} must be set for an elastic run, as python -m model_deploy.launch "
                    "--max_workers does, on parameter servers with --elastic, got none"
                )
        number = environ[WORKER]
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"{WORKER} must be a whole number, got {number!r}")
        return cls(environ[WORLD_FILE], int(number))

    def world(self) -> World | None:
        """Returns the world in the file; None if it is missing or, with a line, unreadable."""
        try:
            found = read_world(self.path)
        except FileNotFoundError:
            return None
        except ValueError as error:
            if str(error) != self._broken:  # once per mistake: the file may be corrected
                self._broken = str(error)
                say(f"the world stays as it was: {error}")
            return None
        self._broken = None
        return found

    def first_world(self, timeout: float) -> World:
        """Waits for a world that includes this worker.

        Raises:
          ValueError: as `read_world`.
          TimeoutError: if there was none in `timeout` seconds.
        """
        with contextlib.suppress(FileNotFoundError):
            world = read_world(self.path)
            if self.worker in world.workers:
                return world
        self.ask()
        found = self._wait(lambda world: self.worker in world.workers, timeout)
        if found is None:
            raise TimeoutError(
                "start_timeout must be long enough for a world with this worker, got "
                f"{timeout:g} s without worker {self.worker} in {self.path}"
            )
        return found

    def ask(self, after: World | None = None) -> None:
        """Asks to be let in or, as a worker of a world, for one after it."""
        with contextlib.suppress(OSError), replaced_file(ready_file(self.path, self.worker)) as to:
            if after is not None:
                to.write(str(after.generation))

    def all_wait(self, world: World) -> bool:
        """Whether all workers of a world wait in a step as this one does, which calls it often."""
        return all_wait(self.path, self.worker, world)

    def next_world(self, world: World, timeout: float) -> World | None:
        """Waits for a world after `world`; returns None if none comes in `timeout` seconds."""
        return self._wait(lambda found: found.generation > world.generation, timeout)

    def may_begin_anew(self, before: World, world: World) -> bool:
        """Whether this worker may end for a new process between two worlds, as no other may.

        It is the one that has been there longest, others that stay have the same values, and nobody
        is missing that was there before.
        """
        stay = [worker for worker in world.workers if worker in before.workers]
        nobody_is_missing = len(world.workers) >= len(before.workers)
        return nobody_is_missing and len(stay) > 1 and stay[0] == self.worker

    def has_begun(self, world: World) -> bool:
        """Whether the run had begun before `world`, so that checkpoints may be its own.

        Never in the first world: a begin mark is then from an earlier run.
        """
        return world.generation > 1 and os.path.exists(begun_file(self.path))

    def checks_start(self, world: World, servers: Cluster | None) -> bool:
        """Whether this worker must check `resume` before it builds a model.

        By all-reduce all workers must: if only the chief checked and failed, the others would
        treat it as lost and continue without it.

        Args:
          world: the current world.
          servers: the parameter servers; None for all-reduce.
        """
        return (servers is None or world.chief == self.worker) and not self.has_begun(world)

    def note_begin(self) -> None:
        """Writes the begin mark, which tells workers that join that the run has begun."""
        with contextlib.suppress(OSError), open(begun_file(self.path), "w"):
            pass

    def _wait(self, fits: Callable[[World], bool], timeout: float) -> World | None:
        """Polls the world file until a world fits; prints a line now and then; None in the end."""
        end = time.monotonic() + timeout
        reported = time.monotonic()
        while True:
            found = self.world()
            if found is not None and fits(found):
                return found
            now = time.monotonic()
            if now >= end:
                return None
            if now - reported >= _REPORT_SECS:
                say(f"worker {self.worker} waits for a new world in {self.path}")
                reported = now
            time.sleep(_POLL_SECS)


def deployment_in(
    world: World, worker: int, config: DeploymentConfig, servers: Cluster | None = None
) -> DeploymentConfig:
    """Returns the deployment of a worker in a world.

    Args:
      world: the world.
      worker: one of its workers.
      config: the deployment of a single process.
      servers: with parameter servers, as for `World.cluster`; None for all-reduce.

    Raises:
      ValueError: as `DeploymentConfig`; if `config` sets what the world decides, such as replicas.
    """
    rules: dict[str, Any] = {"num_replicas": 1, "num_ps_tasks": 0, "accumulate_steps": 1}
    if servers is not None:
        rules["all_reduce"] = False
    for field, value in rules.items():
        if getattr(config, field) != value:
            raise ValueError(
                f"{field} must be {value} for an elastic run, which sets it or does without, "
                f"got {getattr(config, field)}"
            )
    parts = world.parts_of(worker)
    return dataclasses.replace(
        config,
        all_reduce=servers is None,
        num_ps_tasks=0 if servers is None else len(servers.ps_hosts),
        worker_task=None if servers is None else servers.task_id,
        replica_id=list(world.workers).index(worker),
        num_replicas=len(world.workers),
        accumulate_steps=len(parts),
        global_parts=world.max_workers,
        first_part=parts.start,
    )
