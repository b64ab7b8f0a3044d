"""What runs on another machine for a launch, behind `ssh`: a task under its guard, or the ports.

The launcher sends this file, the guard's and the settings over the connection, see `ssh.py`; so
nothing need be installed there but Python, and this file runs by itself, without the package.

Lines come by standard input: of a task the numbers of signals for its guard, 0 for none; of the
ports `ports N`, `close` and `ping`.  The launcher sends a line now and then.  At the end of the
input, and after `silence_secs` without a line, when launcher or connection are gone, nothing stays.
"""

import contextlib
import ipaddress
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

# What a line for the launcher begins with: a shell's start-up files may print others.
MARK = b"model_deploy:"
# ssh itself ends with it where it has no connection; so a task that does says so in a line.
AMBIGUOUS_STATUS = 255

_END = b""


def main(settings: dict[str, Any]) -> None:
    """Runs the task of the settings, or answers the launcher, and ends the process."""
    lines: queue.SimpleQueue[bytes | int] = queue.SimpleQueue()
    threading.Thread(target=_read, args=[lines], daemon=True).start()
    status = _run(settings, lines) if "command" in settings else _Ports(settings).serve(lines)
    sys.stdout.flush()
    os._exit(status)  # beside a thread that reads


def _read(lines: "queue.SimpleQueue[bytes | int]") -> None:
    while line := sys.stdin.buffer.readline():
        lines.put(line)
    lines.put(_END)


def _run(settings: dict[str, Any], lines: "queue.SimpleQueue[bytes | int]") -> int:
    try:
        os.chdir(settings["folder"])
    except OSError as error:
        print(f"cannot enter {settings['folder']}: {error.strerror}", flush=True)
        return 127
    # By the main thread: the kernel ends the guard with the thread that starts it.
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", settings["guard"], str(os.getpid())]
        + settings["command"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        env={**os.environ, **settings["environment"]},
    )
    threading.Thread(target=lambda: lines.put(guard.wait()), daemon=True).start()
    timeout: float | None = settings["silence_secs"]
    while True:
        try:
            line = lines.get(timeout=timeout)
        except queue.Empty:
            line = _END
        if isinstance(line, int):
            break
        if line == _END:
            timeout = None
        # The guard kills all of its task at SIGHUP.
        number = signal.SIGHUP if line == _END else int(line)
        if number:
            guard.send_signal(number)
    status = line if line >= 0 else 128 - line
    if status == AMBIGUOUS_STATUS:
        print(f"exit status {status}", flush=True)
    return status


class _Ports:
    """Keeps ports of this machine from others for the launcher, and says what it knows of it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._address = _own_address(settings["network"])
        self._kept: list[list[socket.socket]] = []

    def serve(self, lines: "queue.SimpleQueue[bytes | int]") -> int:
        """Answers until the launcher is gone; returns the exit status."""
        self._answer(
            {
                "address": self._address,
                "missing": [p for p in self._settings["must_see"] if not os.path.exists(p)],
                "gpus": _gpus(self._settings["visible_gpus"]),
            }
        )
        while True:
            try:
                line = lines.get(timeout=self._settings["silence_secs"])
            except queue.Empty:
                line = _END
            if not isinstance(line, bytes) or line == _END:
                return 0
            words = line.split()
            if words[0] == b"ports":
                self._answer(self._reserve(int(words[1])))
            elif words[0] == b"close":
                for each in self._kept.pop(0):
                    each.close()
            elif words[0] == b"ping":
                self._answer("pong")

    def _answer(self, value: object) -> None:
        sys.stdout.buffer.write(MARK + json.dumps(value).encode() + b"\n")
        sys.stdout.buffer.flush()

    def _reserve(self, count: int) -> list[int]:
        """Binds free ports, as `ReservedPorts` does; as many of the range as are free."""
        first, last = self._settings["ports"]
        numbers = range(first, last + 1) if first else [0] * count
        found: list[socket.socket] = []
        for number in numbers:
            if len(found) == count:
                break
            with contextlib.suppress(OSError):
                found.append(reserved(number))
        self._kept.append(found)
        return [each.getsockname()[1] for each in found]


def reserved(number: int) -> socket.socket:
    """Returns a socket that reserves a port on all addresses, see `ReservedPorts`.

    Args:
      number: the port; 0 for any that is free.

    Raises:
      OSError: if the port is taken.
    """
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    found = socket.socket(family)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        found.bind(("", number))
    except OSError:
        found.close()
        raise
    return found


def _own_address(network: str) -> str:
    """This machine's address in a network, or else the one at which the launcher reaches it."""
    if not network:
        # "client port server port", as sshd sets it; an IPv4 address may look as one of IPv6.
        return os.environ["SSH_CONNECTION"].split()[2].partition("%")[0].replace("::ffff:", "")
    wanted = ipaddress.ip_network(network, strict=False)
    family = socket.AF_INET6 if wanted.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect((str(wanted[1] if wanted.num_addresses > 1 else wanted[0]), 9))
        except OSError:
            return ""
        own: str = sender.getsockname()[0]  # nothing is sent: this asks for the route
    return own if ipaddress.ip_address(own) in wanted else ""


def _gpus(source: str) -> list[str] | None:
    """The GPUs of this machine, by the functions of `processes/visible_gpus.py`."""
    functions: dict[str, Any] = {}
    exec(source, functions)
    listed: list[str] | None = functions["listed"](os.environ)
    return functions["on_this_machine"]() if listed is None else listed
