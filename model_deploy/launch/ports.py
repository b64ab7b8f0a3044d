"""`ReservedPorts`: free ports that stay reserved for the tasks of this launch."""

import contextlib

from model_deploy.launch.far_side import reserved

LOOPBACK = "127.0.0.1"


class ReservedPorts:
    """Free ports of this machine, kept from others until it is closed.

    The sockets are bound, with SO_REUSEADDR, and do not listen.  Linux gives a bound port neither
    to a process that asks for any free port nor to an outgoing connection; but a server that sets
    SO_REUSEADDR, as TensorFlow's does, can listen there, and again after a restart.

    TensorFlow's server needs the port on all addresses, so it is reserved on all: a port of
    127.0.0.1 alone is given to a process that asks for any free port of ::1 or of another address.

    >>> with ReservedPorts(2) as ports:
    ...     len(set(ports.numbers))
    2

    Args:
      count: how many ports.
    """

    def __init__(self, count: int) -> None:
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(reserved(0)) for _ in range(count)]
            self.numbers = [each.getsockname()[1] for each in sockets]
            self._stack = stack.pop_all()

    @property
    def addresses(self) -> list[str]:
        """`host:port` of each, on the loopback."""
        return [f"{LOOPBACK}:{number}" for number in self.numbers]

    def close(self) -> None:
        """Gives the ports back."""
        self._stack.close()

    def __enter__(self) -> "ReservedPorts":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
