"""`TaskProcess`: one task of a launch, and its process under a guard."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from model_deploy.launch import guard
from model_deploy.launch.output import TaskOutput


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

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        number = (self.returncode or 0) - 128
        if number in set(signal.Signals):
            return f"was ended by {signal.Signals(number).name}"
        return f"failed with exit status {self.returncode}"

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
