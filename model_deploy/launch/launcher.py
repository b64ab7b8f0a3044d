"""`Launcher`: runs a command once for each task of a cluster on this machine."""

import contextlib
import dataclasses
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from model_deploy.commands import Options, option
from model_deploy.launch.output import TaskOutput
from model_deploy.launch.task import TaskProcess, task_configs, task_gpus

RESTARTS = ("auto", "task", "all")
_POLL_SECS = 0.1
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class LaunchOptions(Options):
    """How many tasks there are, and what the launcher does when a task fails."""

    num_workers: int = option(1, "workers, the chief included", minimum=1)
    num_ps: int = option(0, "parameter servers", minimum=0)
    max_workers: int | None = option(
        None,
        "workers that there may be, where they come and go: an elastic run starts with so many, "
        "one of asynchronous parameter servers with num_workers; see docs/elastic.md",
        minimum=1,
    )
    elastic: bool = option(
        False,
        "with num_ps and max_workers: workers make each step together, by elastic.train_elastic",
    )
    min_workers: int = option(1, "workers with which such a run goes on at least", minimum=1)
    start_timeout: float = option(
        300.0, "seconds that an elastic run waits with fewer than min_workers", above=0
    )
    max_restarts: int = option(0, "how often in all crashed tasks are started again", minimum=0)
    restart: str = option(
        "auto",
        "what is started again after a crash: the task, or all of them, which counts once; auto: "
        "all where there is no parameter server that keeps the variables",
        choices=RESTARTS,
    )
    log_dir: str | None = option(None, "folder for a log file per task; default: a new one in /tmp")
    grace_secs: float = option(
        10.0,
        "seconds that tasks have to end by themselves, after SIGTERM and after the chief's end",
        above=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_workers is None:
            if self.min_workers != 1:
                raise ValueError(
                    f"min_workers must go with max_workers, got {self.min_workers} without"
                )
            if self.elastic:
                raise ValueError("elastic must go with max_workers, got True without")
            return
        if self.min_workers > self.max_workers:
            raise ValueError(
                f"min_workers must be at most max_workers={self.max_workers}, "
                f"got {self.min_workers}"
            )
        if self.is_elastic and self.num_workers != 1:
            raise ValueError(
                "num_workers must be 1 with max_workers in an elastic run, which starts with "
                f"max_workers, got {self.num_workers}"
            )
        if not 1 <= self.num_workers <= self.max_workers:
            raise ValueError(
                f"num_workers must be at most max_workers={self.max_workers}, "
                f"got {self.num_workers}"
            )
        if self.restart == "all":
            raise ValueError("restart must be auto or task with max_workers, got 'all'")

    @property
    def is_elastic(self) -> bool:
        """Whether workers that come and go make each step together."""
        return self.max_workers is not None and (self.elastic or self.num_ps == 0)

    @property
    def most_workers(self) -> int:
        """How many workers there may be at a time."""
        return self.max_workers or self.num_workers

    @property
    def num_addresses(self) -> int:
        """How many tasks have one address for the whole launch; none in elastic all-reduce."""
        return 0 if self.is_elastic and self.num_ps == 0 else self.most_workers + self.num_ps

    @property
    def restarts_all(self) -> bool:
        """Whether a crash of one task starts all of them again."""
        return self.restart == "all" or (self.restart == "auto" and self.num_ps == 0)


class Launcher:
    """Runs a command once for each task of a cluster on this machine.

    Each gets its place in the cluster by `TF_CONFIG` in its environment.

    Args:
      options: the settings.
      addresses: `host:port` for each worker, then for each ps.
      command: the program and its arguments.
      log_dir: an existing folder for the log files.
      terminal: where the tasks' lines go, each with the name of its task.
      gpus: the GPUs that this process sees, which the workers divide; None if they are not known.

    Attributes:
      signals: the signals that the launcher handles; where SIGUSR1 is one of them it asks for one
        more worker.
    """

    signals: Sequence[signal.Signals] = _STOP_SIGNALS

    def __init__(
        self,
        options: LaunchOptions,
        addresses: Sequence[str],
        command: Sequence[str],
        log_dir: Path,
        terminal: BinaryIO,
        *,
        gpus: Sequence[str] | None = None,
    ) -> None:
        self._options = options
        self._wanted = 0  # workers that were asked for
        self._command = command
        self._terminal = terminal
        self._log_dir = log_dir
        self._done_since: float | None = None  # when the end of a worker said that the run is over
        self._prepare()
        self._tasks = self._first_tasks(addresses, gpus)
        self._selector = selectors.DefaultSelector()
        self._restarts_left = options.max_restarts
        self._stop_signal: int | None = None

    def _prepare(self) -> None:
        """Sets further attributes that `_first_tasks` needs; `Launcher` has none."""

    def _first_tasks(
        self, addresses: Sequence[str], gpus: Sequence[str] | None
    ) -> list[TaskProcess]:
        options = self._options
        num_workers = options.most_workers
        visible = task_gpus(num_workers, options.num_ps, gpus)
        if gpus and num_workers > 1:
            workers = (f"{name}: {own}" for name, own in visible.items() if "worker" in name)
            self._say(f"GPUs of {', '.join(workers)}")
        return [
            self._new_task(name, tf_config, visible[name])
            for name, tf_config in task_configs(num_workers, addresses)
        ]

    def _new_task(
        self,
        name: str,
        tf_config: str | None,
        gpus: str | None,
        more: Mapping[str, str] | None = None,
    ) -> TaskProcess:
        output = TaskOutput(name, self._log_dir / f"{name.replace(' ', '-')}.log", self._terminal)
        return TaskProcess(name, tf_config, output, gpus, more)

    def run(self) -> int:
        """Runs the tasks to their end.

        Returns:
          0 if all ended with 0, else the exit status of the first that failed with no
          restart left; 128 + n when signal n ended the launcher.
        """
        with self._signals_handled():
            try:
                for task in self._first_started():
                    self._start(task)
                return self._watch()
            finally:
                self._end_all()

    def _first_started(self) -> Sequence[TaskProcess]:
        """The tasks that are started first; others may be started later."""
        return self._tasks

    def _watch(self) -> int:
        """Passes on output until the run has ended; returns the exit status of the launch."""
        while True:
            self._pump()
            if self._stop_signal is not None:
                self._say(f"{signal.Signals(self._stop_signal).name}: ending all tasks")
                return 128 + self._stop_signal
            status = self._follow()
            if status is not None:
                return status

    def _follow(self) -> int | None:
        """Looks at which tasks have come and gone; returns the exit status once the run is over."""
        failed = next((task for task in self._tasks if task.returncode), None)
        if failed is not None and not self._restart(failed):
            return self._report_failure(failed)
        if not self._running():
            return 0
        if self._chief.returncode == 0:
            self._done_since = self._done_since or time.monotonic()
            return 0 if self._is_time_to_end() else None
        return None

    def _is_time_to_end(self) -> bool:
        """Whether all tasks have ended, or had time to since the end of the chief."""
        running = self._running()
        late = time.monotonic() - (self._done_since or 0) >= self._options.grace_secs
        if running and late:
            names = ", ".join(task.name for task in running)
            self._say(f"the chief has ended: ending {names}")
        return not running or late

    @property
    def _chief(self) -> TaskProcess:
        return next(task for task in self._tasks if task.name == "worker 0")

    def _restart(self, failed: TaskProcess) -> bool:
        """Starts a failed task, or all tasks, again; returns whether a restart was left."""
        if not self._takes_restart():
            return False
        what = f"{failed.name} {failed.ending}"
        if self._chief.returncode == 0:
            # It would find no chief.
            self._say(f"{what} after the chief had ended: not starting it again")
            failed.forget()
            return True
        whom = "all tasks" if self._options.restarts_all else failed.name
        self._say(f"{what}: starting {whom} again, {self._restarts_left} restarts left")
        if self._options.restarts_all:
            self._end_all()
        for task in self._tasks if self._options.restarts_all else [failed]:
            self._start(task)
        return True

    def _takes_restart(self) -> bool:
        """Counts one more restart; False if none was left."""
        if not self._restarts_left:
            return False
        self._restarts_left -= 1
        return True

    def _start(self, task: TaskProcess) -> None:
        task.start(self._command)
        self._selector.register(task.process.stdout, selectors.EVENT_READ, task)

    def _pump(self) -> None:
        """Passes on the output of tasks, after waiting a moment for some."""
        for key, _ in self._selector.select(_POLL_SECS):
            if not key.data.read():
                self._selector.unregister(key.fileobj)  # it is at its end
        for task in self._running():
            # Not at the end of the output: a process without output may go on, and a stray one
            # may keep the output open.
            if task.process.poll() is not None:
                if task.process.stdout in {
                    key.fileobj for key in self._selector.get_map().values()
                }:
                    self._selector.unregister(task.process.stdout)
                task.close_output()

    def _end_all(self) -> None:
        """Ends the tasks that still run: by SIGTERM, and by SIGKILL `grace_secs` later."""
        for task in self._running():
            task.signal(signal.SIGTERM)
        self._pump_until(time.monotonic() + self._options.grace_secs)
        for task in self._running():
            self._say(f"{task.name} did not end in {self._options.grace_secs:g} s: killing it")
            task.signal(signal.SIGHUP)
        self._pump_until(float("inf"))

    def _running(self) -> list[TaskProcess]:
        return [task for task in self._tasks if task.process and task.returncode is None]

    def _pump_until(self, deadline: float) -> None:
        while self._running() and time.monotonic() < deadline:
            self._pump()

    def _report_failure(self, failed: TaskProcess) -> int:
        lines = [f"{failed.name} {failed.ending}; its last lines:"]
        lines += [f"    {line}" for line in failed.output.tail]
        self._say("\n".join([*lines, f"the whole log is {failed.output.path}"]))
        return failed.returncode or 0

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            self._terminal.write(f"launch| {line}\n".encode())
        self._terminal.flush()

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
        before: dict[int, Callable[..., Any] | int | None] = {
            number: signal.signal(number, self._note_signal) for number in self.signals
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            for task in self._tasks:
                task.output.close()

    def _note_signal(self, number: int, _: object) -> None:
        if number == signal.SIGUSR1:
            self._wanted += 1
        else:
            self._stop_signal = number
