"""`TaskProcess`: one task of a launch, and its process under a guard."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from model_deploy.launch import guard
from model_deploy.launch.output import TaskOutput
from model_deploy.processes import visible_gpus

EVALUATOR = "evaluator"


class TaskProcess:
    """One task, and its process under a guard.

    Args:
      name: such as `worker 1`.
      tf_config: its `TF_CONFIG`; None for none.
      output: takes the lines that the task prints.
      visible_gpus: its `CUDA_VISIBLE_DEVICES`; None for the value that this process has.
      more: further environment variables of the task.

    Attributes:
      name: such as `worker 1`.
      tf_config: its `TF_CONFIG`; None for none.
      process: its guard, whose exit status is the task's; None before it is started.
    """

    def __init__(
        self,
        name: str,
        tf_config: str | None,
        output: TaskOutput,
        visible_gpus: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.tf_config = tf_config
        self.output = output
        self.process: Any = None
        self._environment = {"PYTHONUNBUFFERED": "1", **(more or {})}
        if tf_config is not None:
            self._environment["TF_CONFIG"] = tf_config
        if visible_gpus is not None:
            self._environment["CUDA_VISIBLE_DEVICES"] = visible_gpus

    @property
    def returncode(self) -> int | None:
        """Exit status, 128 + n after signal n; None while it runs."""
        if self.process is None or not self.process.stdout.closed:
            return None
        code: int | None = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    @property
    def killed_by(self) -> signal.Signals | None:
        """The signal that ended it; None if none did."""
        number = (self.returncode or 0) - 128
        return signal.Signals(number) if number in set(signal.Signals) else None

    @property
    def is_cut_off(self) -> bool:
        """Whether it has ended because there was no connection to its machine."""
        return False

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.killed_by is not None:
            return f"was ended by {self.killed_by.name}"
        return f"failed with exit status {self.returncode}"

    def start(self, command: Sequence[str]) -> None:
        """Starts the command as this task.

        This must be the main thread: the kernel ends the guard with the thread that starts it.
        """
        self.output.tail.clear()
        of_tasks = ("TF_CONFIG", guard.SHARE_OF_CORES)
        others = {name: value for name, value in os.environ.items() if name not in of_tasks}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**others, **self._environment},
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
        """Passes on the rest of the output, once the process has ended."""
        while piece := self.process.stdout.read(1 << 16):
            self.output.write(piece)
        self.output.end_line()
        self.process.stdout.close()

    def forget(self) -> None:
        """Forgets the process and its exit status, as if the task had never been started."""
        self.process = None

    def signal(self, number: int) -> None:
        """Sends a signal to the guard: SIGHUP kills, SIGTERM and SIGINT are passed on."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)


def task_gpus(
    num_workers: int, num_ps: int, gpus: Sequence[str] | None, *, evaluator: bool = False
) -> dict[str, str | None]:
    """`CUDA_VISIBLE_DEVICES` of each task by its name; None for the launcher's own value.

    Workers divide the GPUs evenly, parameter servers see none.  An evaluator sees those that the
    workers leave over.

    >>> task_gpus(2, 1, ["4", "5", "6", "7"])
    {'worker 0': '4,5', 'worker 1': '6,7', 'ps 0': '-1'}
    >>> task_gpus(2, 0, ["0", "1", "2"], evaluator=True)
    {'worker 0': '0', 'worker 1': '1', 'evaluator': '2'}

    Args:
      num_workers: workers, the chief included.
      num_ps: parameter servers.
      gpus: the GPUs that the launcher sees; None if it does not know them.
      evaluator: whether there is one.
    """
    divided = gpus is not None and num_workers > 1
    left = (
        gpus[len(gpus) // num_workers * num_workers :] if gpus and len(gpus) >= num_workers else ()
    )
    return {
        **{
            f"worker {i}": visible_gpus.share(gpus or (), i, num_workers) if divided else None
            for i in range(num_workers)
        },
        **{f"ps {i}": visible_gpus.NO_GPU for i in range(num_ps)},
        **({EVALUATOR: ",".join(left) or visible_gpus.NO_GPU} if evaluator else {}),
    }


def task_configs(
    num_workers: int, addresses: Sequence[str], *, chief: str = "chief", evaluator: bool = False
) -> list[tuple[str, str]]:
    """Name and `TF_CONFIG` of each task, the parameter servers first.

    An evaluator has no address, and is last.

    >>> for name, tf_config in task_configs(1, ["a:1", "b:1"]):
    ...     print(name, tf_config)
    ps 0 {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "ps", "index": 0}}
    worker 0 {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}, "task": {"type": "chief", "index": 0}}

    Args:
      num_workers: how many of the addresses are workers; the first is the chief.
      addresses: `host:port` for each worker, then for each ps.
      chief: job of the chief, `chief`, `master` or `worker`.
      evaluator: whether there is one.
    """
    workers, ps = addresses[:num_workers], addresses[num_workers:]
    chiefs = 0 if chief == "worker" else 1  # those with a job of their own
    jobs = {chief: workers[:chiefs], "worker": workers[chiefs:], "ps": ps}
    cluster = {kind: list(hosts) for kind, hosts in jobs.items() if hosts}
    tasks = [("ps", i, f"ps {i}") for i in range(len(ps))]
    tasks += [(chief, 0, "worker 0")]
    tasks += [("worker", i - chiefs, f"worker {i}") for i in range(1, num_workers)]
    tasks += [(EVALUATOR, 0, EVALUATOR)] if evaluator else []
    return [
        (name, json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}))
        for kind, index, name in tasks
    ]
