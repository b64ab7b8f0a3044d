"""`ElasticLauncher`: workers that come and go, and the file that lists them."""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from model_deploy.commands import REFUSED
from model_deploy.launch.launcher import Launcher
from model_deploy.launch.task import TaskProcess
from model_deploy.processes import (
    WORKER,
    WORLD_FILE,
    World,
    asks_for_world,
    begun_file,
    read_world,
    ready_file,
    waiting_file,
    write_world,
)

_FILE = "world.json"


def check_log_dir(log_dir: Path) -> None:
    """Checks that a `world.json` in the folder of the logs is that of an earlier launch.

    Raises:
      ValueError: if the file has other content, naming it.
    """
    with contextlib.suppress(FileNotFoundError):
        try:
            read_world(log_dir / _FILE)
        except ValueError as error:
            raise ValueError(
                f"log_dir must have no {_FILE} but that of a launch, got {error}"
            ) from error


class ElasticLauncher(Launcher):
    """Runs a command once for each worker of an elastic run on this machine.

    It starts `max_workers`, and writes `world.json` in the folder of the logs: again whenever a
    worker has ended, or a worker that was started later is ready.  Workers are numbered in the
    order in which they are started.  SIGUSR1 asks for one more.

    This is all-reduce; `ElasticServersLauncher` has parameter servers, too.

    It takes the arguments of `Launcher`: options with `max_workers`, and no addresses.
    """

    signals = (*Launcher.signals, signal.SIGUSR1)

    def _prepare(self) -> None:
        self._size = self._options.most_workers
        self._path = self._log_dir / _FILE
        self._number_of: dict[str, int] = {}
        self._place_of: dict[str, str] = {}
        self._world: World | None = None
        self._seen: set[str] = set()  # names of the tasks whose end was looked at
        self._lost: list[TaskProcess] = []
        self._alone_since: float | None = None
        self._known = set(self._machines.worker_places(self._size))
        self._leaving: dict[str, float] = {}  # until when they have time to
        self._asked_to_end: set[str] = set()

    def _first_tasks(self, addresses: Sequence[str]) -> list[TaskProcess]:
        del addresses  # each world has its own
        marks = (mark(self._path.name, 0)[:-1] + "*" for mark in (ready_file, waiting_file))
        stale = *marks, begun_file(self._path.name)
        for path in itertools.chain.from_iterable(map(self._log_dir.glob, stale)):
            path.unlink()
        tasks = [self._new_worker(place) for place in self._machines.worker_places(self._size)]
        self._write_world(tasks)
        return tasks

    def _new_evaluator(self, addresses: Sequence[str]) -> TaskProcess:
        # It connects to nobody: the addresses of the first world are as good as any.
        first = [] if self._world is None else list(self._world.workers.values())
        return super()._new_evaluator(addresses or first)

    def _follow(self) -> int | None:
        """As `Launcher._follow`; also writes a new world when workers have come or gone."""
        for line in self._machines.changes():
            self._say(line)
        self._heed_places()
        for task in self._tasks:
            if task.returncode is not None and task.name not in self._seen:
                self._seen.add(task.name)
                self._has_ended(task)
        if self._done_since is not None and self._chief_has_ended_well():
            return 0 if self._is_time_to_end() else None
        if not self._running_workers() and not self._wanted:
            if not self._lost:
                return 0
            # The chief was lost behind the others, maybe before its last checkpoint.
            if not self._takes_restart():
                return self._report_failure(self._lost[-1])
            self._wanted += 1
        while self._wanted:
            self._wanted -= 1
            self._start_one_more()
        there = [task for task in self._running_workers() if self._is_there(task)]
        numbers = {self._number_of[task.name] for task in there}
        if numbers != set(self._members) or any(map(self._asks, numbers)):
            return self._change_world(there)
        self._alone_since = None
        return None

    def _running_workers(self) -> list[TaskProcess]:
        return [task for task in self._running() if task.name in self._number_of]

    @property
    def _members(self) -> Sequence[int]:
        """The numbers of the workers in the world."""
        return [] if self._world is None else list(self._world.workers)

    def _is_there(self, task: TaskProcess) -> bool:
        number = self._number_of[task.name]
        if task.name in self._leaving:
            return False
        return number in self._members or self._asks(number)

    def _asks(self, number: int) -> bool:
        """Whether a worker asks to be let into the world, or, if it is in it, for another world."""
        generation = 0 if self._world is None else self._world.generation
        return asks_for_world(self._path, number, generation)

    def _heed_places(self) -> None:
        """Asks for workers in places that are new, and parts with those whose place is gone."""
        places = self._machines.worker_places(self._size)
        self._wanted += len(set(places) - self._known)
        self._known.update(places)
        now, grace = time.monotonic(), self._options.grace_secs
        for task in self._running_workers():
            if self._place_of[task.name] not in places and task.name not in self._leaving:
                self._leaving[task.name] = now + grace
            # Who is not in the world ends by itself, after a step; but not who waits to be let in.
            if self._leaving.get(task.name, now) < now:
                self._leaving[task.name] = now + grace
                task.signal(signal.SIGHUP if task.name in self._asked_to_end else signal.SIGTERM)
                self._asked_to_end.add(task.name)

    def _has_ended(self, task: TaskProcess) -> None:
        if task.name in self._leaving:
            self._say(f"{task.name} {task.ending if task.returncode else 'has left'}")
            return
        if task.returncode == 0:
            self._done_since = self._done_since or time.monotonic()
            return
        if task.returncode == REFUSED and self._number_of[task.name] in self._members:
            self._say(f"{task.name} ended with {REFUSED}: a new worker is started, not counted")
            self._wanted += 1
            return
        self._lost.append(task)
        self._say("\n".join([f"{task.name} {task.ending}", *self._machines.newly_lost()]))
        if self._done_since is None and self._free_places() and self._takes_restart():
            self._wanted += 1

    def _chief_has_ended_well(self) -> bool:
        if self._world is None:
            return False
        number = self._world.chief
        chief = next((t for t in self._tasks if self._number_of.get(t.name) == number), None)
        return chief is not None and chief.returncode == 0

    def _change_world(self, there: list[TaskProcess]) -> int | None:
        """Writes a world of the workers that are there, once it is time and they are enough."""
        now, least = time.monotonic(), self._options.min_workers
        if self._done_since is not None and now - self._done_since < self._options.grace_secs:
            return None  # other workers may be about to end, too
        if len(there) >= min(least, self._size) or self._done_since is not None:
            self._alone_since = None
            if there:
                try:
                    self._write_world(there)
                except ConnectionError as error:
                    self._say(str(error))
            return None
        if self._alone_since is None:
            self._alone_since = now
            self._say(f"waiting with {len(there)} of at least {least} workers")
        if now - self._alone_since < self._options.start_timeout:
            return None
        self._say(
            "start_timeout must be long enough for min_workers to be there, got "
            f"{self._options.start_timeout:g} s with {len(there)} of {least}"
        )
        return self._report_failure(self._lost[-1]) if self._lost else 1

    def _start_one_more(self) -> None:
        free = self._free_places()
        if not free:
            self._say(f"no worker is started: all {self._size} of max_workers are there")
            return
        task = self._new_worker(free[0])
        self._tasks.append(task)
        self._say(f"starting {task.name}")
        self._start(task)

    def _free_places(self) -> list[str]:
        """Places without a worker."""
        used = {self._place_of[task.name] for task in self._running_workers()}
        return [place for place in self._machines.worker_places(self._size) if place not in used]

    def _new_worker(self, place: str) -> TaskProcess:
        number = len(self._number_of)
        name = f"worker {number}"
        self._number_of[name], self._place_of[name] = number, place
        more = {WORLD_FILE: str(self._path.absolute()), WORKER: str(number)}
        gpus = self._machines.visible_gpus(self._size, self._options.num_ps)[place]
        return self._new_task(name, self._tf_config(place), gpus, more, place)

    def _tf_config(self, place: str) -> str | None:
        """`TF_CONFIG` of the worker in a place; None for a worker without one."""
        del place
        return None

    def _write_world(self, there: Sequence[TaskProcess]) -> None:
        """Writes a world of these workers to the file."""
        numbers = [self._number_of[task.name] for task in there]
        generation = 1 if self._world is None else self._world.generation + 1
        workers = dict(zip(numbers, self._new_addresses(there), strict=True))
        for number in numbers:
            with contextlib.suppress(FileNotFoundError):
                os.remove(ready_file(self._path, number))
        self._world = World(generation, self._size, workers)
        write_world(self._path, self._world)
        self._say(f"world {generation}: {', '.join(task.name for task in there)}")

    def _new_addresses(self, there: Sequence[TaskProcess]) -> Sequence[str]:
        """Addresses of these workers in a new world, with ports that no world before has had."""
        return self._machines.new_addresses([self._place_of[task.name] for task in there])
