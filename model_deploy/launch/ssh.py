"""What runs on another machine, over the user's `ssh`: the far side's program and its settings."""

import contextlib
import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from model_deploy.launch import far_side

Process: TypeAlias = "subprocess.Popen[bytes]"

# ssh ends with it where it has no connection.
NO_CONNECTION = 255

_CONNECT_SECS = 10
# The far side reads its program from the connection: nothing is quoted, and nothing is to be seen
# in a list of processes.
_BOOTSTRAP = "import sys;exec(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())))"
# What a task on another machine gets of the launcher's environment.
_NAMES = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG", "TZ")
_PREFIXES = ("PYTHON", "TF_", "GRPC_", "MODEL_DEPLOY_", "OMP_", "KMP_", "MKL_", "NCCL_", "XLA_")


class Connection(NamedTuple):
    """How hosts are reached.

    Attributes:
      ssh: the command, with options of the user's.
      python: Python on the hosts.
      silence_secs: seconds after which a side that hears nothing takes the other for lost.
      environment: names of variables that tasks get of the launcher's beside the usual ones.
    """

    ssh: Sequence[str]
    python: str
    silence_secs: float
    environment: Sequence[str] = ()

    def command(self, host: str) -> list[str]:
        """The command that starts the far side's program on a host."""
        settings = {
            "BatchMode": "yes",  # a question, for a password say, has nobody to answer it
            "ConnectTimeout": _CONNECT_SECS,
            "ServerAliveInterval": max(1, int(self.silence_secs / 3)),
            "ServerAliveCountMax": 3,
            "ControlMaster": "no",  # it would outlive the launch; one that is there is used
        }
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        far = f"exec {shlex.quote(self.python)} -I -S -c {shlex.quote(_BOOTSTRAP)}"
        return [*self.ssh, "-T", "-x", *options, "--", host, far]

    def open(self, host: str, settings: Mapping[str, Any], stderr: Any) -> Process:
        """Starts the far side's program on a host; its standard input takes lines from then on."""
        process = subprocess.Popen(
            self.command(host),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            # Ctrl-C on the terminal is for the launcher, which passes it on.
            start_new_session=True,
        )
        settings = {**settings, "silence_secs": self.silence_secs}
        source = Path(far_side.__file__).read_text(encoding="utf-8")
        text = f"{source}\nmain(json.loads({json.dumps(settings)!r}))\n".encode()
        with contextlib.suppress(BrokenPipeError):  # ssh says why it has ended
            _stdin(process).write(b"%d\n%b" % (len(text), text))
            _stdin(process).flush()
        os.set_blocking(_stdin(process).fileno(), False)
        return process

    def passed_on(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The part of the launcher's environment that goes to other machines.

        That is what finds programs, and what is set for Python, TensorFlow and this library; names
        and passwords of other things stay here.

        >>> environ = {"TF_CPP_MIN_LOG_LEVEL": "3", "HOME": "/root", "TF_CONFIG": "{}"}
        >>> Connection(["ssh"], "python3", 30, ["HOME"]).passed_on(environ)
        {'TF_CPP_MIN_LOG_LEVEL': '3', 'HOME': '/root'}
        """
        named = {*_NAMES, *self.environment}
        return {
            name: value
            for name, value in environ.items()
            if name in named or (name.startswith(_PREFIXES) and name != "TF_CONFIG")
        }


def send(process: Process, line: str) -> None:
    """Sends a line to the far side; nothing, where it takes none any more."""
    with contextlib.suppress(OSError, ValueError):  # it is gone, or its input is closed
        os.write(_stdin(process).fileno(), f"{line}\n".encode())


def _stdin(process: Process) -> Any:
    return process.stdin
