"""`ElasticLauncher`: workers that come and go, and the file that lists them."""

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from model_deploy.launch.launcher import Launcher
from model_deploy.launch.ports import ReservedPorts
from model_deploy.launch.task import TaskProcess, task_gpus
from model_deploy.processes import (
    WORKER,
    WORLD_FILE,
    World,
    begun_file,
    read_world,
    ready_file,
    write_world,
)

# How many worlds have their ports reserved: the newest one, and the one before it, in which some
# workers may still be.
_KEPT = 2
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
        self._slot_of: dict[str, int] = {}
        self._world: World | None = None
        self._ports: list[ReservedPorts] = []
        self._seen: set[str] = set()  # names of the tasks whose end was looked at
        self._lost: list[TaskProcess] = []
        self._alone_since: float | None = None
        self._gpus: list[str | None] = []

    def _first_tasks(
        self, addresses: Sequence[str], gpus: Sequence[str] | None
    ) -> list[TaskProcess]:
        del addresses  # each world has its own
        self._gpus = list(task_gpus(self._size, 0, gpus).values())
        stale = ready_file(self._path.name, 0)[:-1] + "*", begun_file(self._path.name)
        for path in itertools.chain.from_iterable(map(self._log_dir.glob, stale)):
            path.unlink()
        tasks = [self._new_worker(slot) for slot in range(self._size)]
        self._write_world(tasks)
        return tasks

    def _new_evaluator(self, addresses: Sequence[str], gpus: Sequence[str] | None) -> TaskProcess:
        # It connects to nobody: the addresses of the first world are as good as any.
        first = [] if self._world is None else list(self._world.workers.values())
        return super()._new_evaluator(addresses or first, gpus)

    def _watch(self) -> int:
        try:
            return super()._watch()
        finally:
            for ports in self._ports:
                ports.close()

    def _follow(self) -> int | None:
        """As `Launcher._follow`; also writes a new world when workers have come or gone."""
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
        return number in self._members or self._asks(number)

    def _asks(self, number: int) -> bool:
        """Whether a worker asks to be let into the world, or, if it is in it, for another world."""
        return os.path.exists(ready_file(self._path, number))

    def _has_ended(self, task: TaskProcess) -> None:
        if task.returncode == 0:
            self._done_since = self._done_since or time.monotonic()
            return
        self._lost.append(task)
        self._say(f"{task.name} {task.ending}")
        if self._done_since is None and self._takes_restart():
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
                self._write_world(there)
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
        used = {self._slot_of[task.name] for task in self._running_workers()}
        free = [slot for slot in range(self._size) if slot not in used]
        if not free:
            self._say(f"no worker is started: all {self._size} of max_workers are there")
            return
        task = self._new_worker(free[0])
        self._tasks.append(task)
        self._say(f"starting {task.name}")
        self._start(task)

    def _new_worker(self, slot: int) -> TaskProcess:
        number = len(self._number_of)
        name = f"worker {number}"
        self._number_of[name], self._slot_of[name] = number, slot
        more = {WORLD_FILE: str(self._path.absolute()), WORKER: str(number)}
        return self._new_task(name, self._tf_config(slot), self._gpus[slot], more)

    def _tf_config(self, slot: int) -> str | None:
        """`TF_CONFIG` of the worker in a place; None for a worker without one."""
        del slot
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
        ports = ReservedPorts(len(there))
        self._ports.append(ports)
        while len(self._ports) > _KEPT:
            self._ports.pop(0).close()
        return ports.addresses
