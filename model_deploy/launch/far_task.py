"""`FarTask`: a task on another machine, whose process here is `ssh`."""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from model_deploy.launch import far_side, guard
from model_deploy.launch.output import TaskOutput
from model_deploy.launch.ssh import NO_CONNECTION, Connection, send
from model_deploy.launch.task import TaskProcess


class FarTask(TaskProcess):
    """One task on another machine, in the folder that is the launcher's.

    Args:
      host: the machine, as `ssh` takes it.
      connection: how it is reached.
      name: see `TaskProcess`, as the others.
      tf_config: its `TF_CONFIG`.
      output: takes its lines.
      visible_gpus: its `CUDA_VISIBLE_DEVICES`; None for that of the machine.
      more: further environment variables.
    """

    def __init__(
        self,
        host: str,
        connection: Connection,
        name: str,
        tf_config: str | None,
        output: TaskOutput,
        *,
        visible_gpus: str | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, tf_config, output, visible_gpus, more)
        self.host = host
        self._connection = connection
        self._is_given_up = False

    @property
    def is_connecting(self) -> bool:
        """Whether it is not known yet to have started on its machine."""
        return self.process is not None and self.process.poll() is None and not self.output.tail

    @property
    def is_cut_off(self) -> bool:
        """Whether it has ended because there was no connection to its machine."""
        if self._is_given_up:
            return self.returncode is not None
        said = f"exit status {far_side.AMBIGUOUS_STATUS}"
        return self.returncode == NO_CONNECTION and said not in list(self.output.tail)[-1:]

    @property
    def killed_by(self) -> signal.Signals | None:
        """The signal that ended it; None if none did."""
        return None if self.is_cut_off else super().killed_by

    @property
    def ending(self) -> str:
        """How it ended, in words, and where."""
        if self.is_cut_off:
            return f"was lost: no connection to {self.host}"
        return f"{super().ending} on {self.host}"

    def start(self, command: Sequence[str]) -> None:
        """Starts the command as this task."""
        self.output.tail.clear()
        self._is_given_up = False
        settings = {
            "command": list(command),
            "folder": os.getcwd(),
            "environment": {**self._connection.passed_on(os.environ), **self._environment},
            "guard": Path(guard.__file__).read_text(encoding="utf-8"),
        }
        self.process = self._connection.open(self.host, settings, subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)

    def cut_off(self) -> None:
        """Gives up the connection, as the machine does not answer."""
        if self.process is not None and self.process.poll() is None:
            self._is_given_up = True
            self.process.kill()

    def keep_alive(self) -> None:
        """Lets the other side know that the launcher is there."""
        if self.process is not None and self.process.poll() is None:
            send(self.process, "0")

    def signal(self, number: int) -> None:
        """Sends a signal to the guard there; a machine that is gone hears of none."""
        send(self.process, str(int(number)))
        if number == signal.SIGHUP:
            # ssh ends with the connection, but not soon where one of the user's is shared.
            timer = threading.Timer(self._connection.silence_secs, self.process.kill)
            timer.daemon = True
            timer.start()
