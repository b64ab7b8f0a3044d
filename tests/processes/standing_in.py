"""Commands on the `PATH` of a shell whose programs are forked, see `forking.py`, and so start fast.

A command is a shell script; it hands its words, environment, folder and output to this process
over a socket, passes signals on, and has the exit status of the program.
"""

import contextlib
import json
import os
import shlex
import socket
import sys
import threading
import uuid

from tests.processes.forking import MAX_REQUEST_BYTES, fork

_CLIENT = """
import json, os, signal, socket, sys
own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
own.connect("\\0" + sys.argv[1])
request = {"command": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}
socket.send_fds(own, [json.dumps(request).encode()], [1])
pid = int(own.recv(64))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: os.kill(pid, number))
status = int(own.recv(64))
sys.exit(status if status >= 0 else 128 - status)
"""


@contextlib.contextmanager
def commands(folder, scripts):
    """Writes commands into a new folder `bin`, and serves them meanwhile.

    Args:
      folder: where that is made.
      scripts: of each command by its name, a shell script; in it, `run` before the words of a
        program forks that.

    Yields:
      What the `PATH` has to begin with.
    """
    place = folder / "bin"
    place.mkdir()
    client, address = place / "client.py", uuid.uuid4().hex
    client.write_text(_CLIENT)
    run = shlex.join([sys.executable, "-I", "-S", str(client), address])
    for name, script in scripts.items():
        (place / name).write_text(f'#!/bin/sh\nrun() {{ exec {run} "$@"; }}\n{script}')
        (place / name).chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0{address}")  # of no file, whose name might be too long
        listener.listen()
        thread = threading.Thread(target=_serve, args=[listener], daemon=True)
        thread.start()
        try:
            yield place
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # which ends `accept`
            thread.join()


def _serve(listener):
    """Answers each client in a thread of its own."""
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_answer, args=[client], daemon=True).start()


def _answer(client):
    """Forks what a client asks for; tells it the process id, and the exit status."""
    with client:
        data, [output], *_ = socket.recv_fds(client, MAX_REQUEST_BYTES, 1)
        request = json.loads(data)
        with os.fdopen(output, "wb") as log:
            forked = fork(request["command"], request["env"], log, request["cwd"])
        with contextlib.suppress(OSError):  # the client was killed
            client.send(f"{forked.pid}\n".encode())
            client.send(f"{forked.wait()}\n".encode())
