"""`Machine`: a host that `ssh` reaches, and the connection that keeps its ports."""

import contextlib
import json
import multiprocessing.connection
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from model_deploy.launch import far_side
from model_deploy.launch.hosts import Host
from model_deploy.launch.ssh import Connection, send
from model_deploy.launch.this_machine import KEPT_WORLDS

# Enough for a machine that is known to be there.
_ANSWER_SECS = 5.0


class Machine:
    """A host, and the connection that keeps its ports.  Methods raise OSError if it is lost.

    Args:
      host: the host.
      connection: how it is reached.
      settings: of the far side.

    Attributes:
      host: the host.
      address: its IP address, once it has said hello.
      gpus: the GPUs that there are; None if they are not known.
    """

    def __init__(self, host: Host, connection: Connection, settings: Mapping[str, Any]) -> None:
        self.host = host
        self.address = ""
        self.gpus: list[str] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._process = connection.open(host.name, settings, self._errors)
        self._unread = b""
        self._worlds = 0

    def hello(self, deadline: float) -> dict[str, Any]:
        """What the host says of itself, when it has been reached; TimeoutError if not yet."""
        answer: dict[str, Any] = self._answer(deadline)
        self.address, self.gpus = answer["address"], answer["gpus"]
        return answer

    def addresses(self, count: int) -> list[str]:
        """`host:port` for so many tasks, which are kept for them as long as this object lives."""
        numbers = self._ask(f"ports {count}")
        if len(numbers) < count:
            raise ValueError(
                f"ports must have at least {count} that are free on {self.host.name}, "
                f"got {len(numbers)}"
            )
        host = f"[{self.address}]" if ":" in self.address else self.address
        return [f"{host}:{number}" for number in numbers]

    def addresses_in_world(self, count: int) -> list[str]:
        """As `addresses`, for a world: those of worlds that are long gone are given back."""
        found = self.addresses(count)
        self._worlds += 1
        if self._worlds > KEPT_WORLDS:
            send(self._process, "close")
        return found

    def answers(self) -> bool:
        """Whether the host is there."""
        try:
            return bool(self._ask("ping") == "pong")
        except OSError:
            return False

    def keep_alive(self) -> None:
        """Lets the host know that the launcher is there."""
        send(self._process, "0")

    def close(self) -> None:
        """Ends the connection, and gives the ports back."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(_ANSWER_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._errors.close()

    def _ask(self, line: str) -> Any:
        send(self._process, line)
        return self._answer(time.monotonic() + _ANSWER_SECS)

    def _answer(self, deadline: float) -> Any:
        """The next answer; raises TimeoutError, or ConnectionError with what ssh says."""
        out = self._process.stdout.fileno()  # type: ignore[union-attr]
        while True:
            *lines, self._unread = self._unread.split(b"\n")
            for i, line in enumerate(lines):
                if line.startswith(far_side.MARK):
                    self._unread = b"\n".join([*lines[i + 1 :], self._unread])
                    return json.loads(line.removeprefix(far_side.MARK))
            left = max(0.0, deadline - time.monotonic())
            if not multiprocessing.connection.wait([out], left):
                raise TimeoutError("it does not answer")
            piece = os.read(out, 1 << 16)
            if not piece:
                raise ConnectionError(self._why())
            self._unread += piece

    def _why(self) -> str:
        """The last line of what ssh, or Python there, has said."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else f"ssh ended with {self._process.wait()}"
