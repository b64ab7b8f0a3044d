"""`Launcher`: runs a command once for each task of a cluster on this machine."""

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from model_deploy.launch import guard
from model_deploy.launch.output import TaskOutput
from model_deploy.options import Options, option

RESTARTS = ("auto", "task", "all")
_POLL_SECS = 0.1
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclasses.dataclass(frozen=True)
class LaunchOptions(Options):
    """How many tasks there are, and what happens when one fails."""

    num_workers: int = option(1, "workers, the chief included", minimum=1)
    num_ps: int = option(0, "parameter servers", minimum=0)
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

    @property
    def restarts_all(self) -> bool:
        """Whether a crash of one task starts all of them again."""
        return self.restart == "all" or (self.restart == "auto" and self.num_ps == 0)


class TaskProcess:
    """One task, and its process under a guard.

    Attributes:
      name: such as `worker 1`.
      process: its guard, whose exit status is the task's; None before it is started.
    """

    def __init__(self, name: str, tf_config: str, output: TaskOutput) -> None:
        self.name = name
        self.output = output
        self.process: Any = None
        self._tf_config = tf_config

    @property
    def returncode(self) -> int | None:
        """Exit status, 128 + n after signal n; None while it runs."""
        if self.process is None or not self.process.stdout.closed:
            return None
        code: int | None = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def start(self, command: Sequence[str]) -> None:
        """Starts the command as this task.

        This must be the main thread: the kernel ends the guard with the thread that starts it.
        """
        self.output.tail.clear()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TF_CONFIG": self._tf_config, "PYTHONUNBUFFERED": "1"},
            # Ctrl-C on the terminal is for the launcher, which passes it on.
            start_new_session=True,
        )
        os.set_blocking(self.process.stdout.fileno(), False)

    def read(self) -> bool:
        """Passes on a piece of output; returns whether more may come."""
        piece = self.process.stdout.read(1 << 16)
        if piece:
            self.output.write(piece)
        return piece != b""

    def close_output(self) -> None:
        """Passes on what is left of the output of a process that has ended."""
        while piece := self.process.stdout.read(1 << 16):
            self.output.write(piece)
        self.output.end_line()
        self.process.stdout.close()

    def forget(self) -> None:
        """Lets it be as if it had never been started."""
        self.process = None

    def signal(self, number: int) -> None:
        """Sends a signal to the guard: SIGHUP kills, SIGTERM and SIGINT are passed on."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


class Launcher:
    """Runs a command once for each task of a cluster on this machine.

    Each gets its place in the cluster by `TF_CONFIG` in its environment.

    Args:
      options: the settings.
      addresses: `host:port` for each worker, then for each ps.
      command: the program and its arguments.
      log_dir: an existing folder for the log files.
      terminal: where the tasks' lines go, each with the name of its task.
    """

    def __init__(
        self,
        options: LaunchOptions,
        addresses: Sequence[str],
        command: Sequence[str],
        log_dir: Path,
        terminal: BinaryIO,
    ) -> None:
        self._options = options
        self._command = command
        self._terminal = terminal
        self._log_dir = log_dir
        self._tasks = [
            TaskProcess(name, tf_config, TaskOutput(name, log_dir / _log_name(name), terminal))
            for name, tf_config in task_configs(options.num_workers, addresses)
        ]
        self._selector = selectors.DefaultSelector()
        self._restarts_left = options.max_restarts
        self._stop_signal: int | None = None

    def run(self) -> int:
        """Runs the tasks to their end.

        Returns:
          0 if all ended with 0, else the exit status of the first that failed with no
          restart left; 128 + n when signal n ended the launcher.
        """
        with self._signals_handled():
            try:
                for task in self._tasks:
                    self._start(task)
                return self._watch()
            finally:
                self._end_all()

    def _watch(self) -> int:
        """Passes on output until all have ended or one has failed for good."""
        deadline = None
        while True:
            self._pump()
            if self._stop_signal is not None:
                self._say(f"{signal.Signals(self._stop_signal).name}: ending all tasks")
                return 128 + self._stop_signal
            failed = next((task for task in self._tasks if task.returncode), None)
            if failed is not None and not self._restart(failed):
                return self._report_failure(failed)
            running = self._running()
            if not running:
                return 0
            if self._chief.returncode == 0:
                deadline = deadline or time.monotonic() + self._options.grace_secs
                if time.monotonic() >= deadline:
                    names = ", ".join(task.name for task in running)
                    self._say(f"the chief has ended: ending {names}")
                    return 0

    @property
    def _chief(self) -> TaskProcess:
        return next(task for task in self._tasks if task.name == "worker 0")

    def _restart(self, failed: TaskProcess) -> bool:
        """Starts a failed task again, or all; returns whether a restart was left."""
        if self._restarts_left == 0:
            return False
        self._restarts_left -= 1
        what = f"{failed.name} {_ending(failed.returncode)}"
        if self._chief.returncode == 0:
            # Nobody would be there for it.
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

    def _start(self, task: TaskProcess) -> None:
        task.start(self._command)
        self._selector.register(task.process.stdout, selectors.EVENT_READ, task)

    def _pump(self) -> None:
        """Passes on what tasks have printed, waiting for it a moment."""
        for key, _ in self._selector.select(_POLL_SECS):
            if not key.data.read():
                self._selector.unregister(key.fileobj)  # it is at its end
        for task in self._running():
            # Not at the end of the output: a process without output may go on, and a stray one
            # may keep the output open.
            if task.process.poll() is not None:
                if task.process.stdout in {key.fileobj for key in self._selector.get_map().values()}:
                    self._selector.unregister(task.process.stdout)
                task.close_output()

    def _end_all(self) -> None:
        """Ends what still runs: SIGTERM, and after the grace SIGKILL."""
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
        lines = [f"{failed.name} {_ending(failed.returncode)}; its last lines:"]
        lines += [f"    {line}" for line in failed.output.tail]
        self._say("\n".join([*lines, f"the whole log is {failed.output.path}"]))
        return failed.returncode or 0

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            self._terminal.write(f"launch| {line}\n".encode())
        self._terminal.flush()

    @contextlib.contextmanager
    def _signals_handled(self) -> Iterator[None]:
        def note(number: int, _: object) -> None:
            self._stop_signal = number

        before: dict[int, Callable[..., Any] | int | None] = {
            number: signal.signal(number, note) for number in _STOP_SIGNALS
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            for task in self._tasks:
                task.output.close()


def task_configs(num_workers: int, addresses: Sequence[str]) -> list[tuple[str, str]]:
    """Name and `TF_CONFIG` of each task, the parameter servers first.

    >>> for name, tf_config in task_configs(1, ["a:1", "b:1"]):
    ...     print(name, tf_config)
    ps 0 {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}}
    worker 0 {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "chief", "index": 0}}

    Args:
      num_workers: how many of the addresses are workers; the first is the chief.
      addresses: `host:port` for each worker, then for each ps.
    """
    workers, ps = addresses[:num_workers], addresses[num_workers:]
    jobs = {"chief": workers[:1], "worker": workers[1:], "ps": ps}
    cluster = {kind: list(hosts) for kind, hosts in jobs.items() if hosts}
    tasks = [("ps", i, f"ps {i}") for i in range(len(ps))]
    tasks += [("chief", 0, "worker 0")]
    tasks += [("worker", i - 1, f"worker {i}") for i in range(1, num_workers)]
    return [
        (name, json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}))
        for kind, index, name in tasks
    ]


def _log_name(name: str) -> str:
    return name.replace(" ", "-") + ".log"


def _ending(returncode: int | None) -> str:
    """How a task ended, in words."""
    number = (returncode or 0) - 128
    if number in set(signal.Signals):
        return f"was ended by {signal.Signals(number).name}"
    return f"failed with exit status {returncode}"
