"""`cut_connections`: ends this process's connections to other tasks, as a lost network does."""

import contextlib
import os
import socket
import stat
from collections.abc import Iterator, Sequence

from model_deploy.cluster.network import resolve_host
from model_deploy.processes import Task

_DESCRIPTORS = "/dev/fd"
_MAPPED = "::ffff:"  # an IPv4 address as one of IPv6


def cut_connections(tasks: Sequence[Task]) -> int:
    """Ends the TCP connections of this process to the servers of tasks; returns how many.

    Calls that wait for an answer by one of them fail at once, and TensorFlow connects anew for the
    next ones.  For a step that nothing else can end: TensorFlow may lose the cancellation of this
    process's part of a step which a server has refused (`master_session.cc`, `RunManyGraphs`, tells
    all parts of the first error, also those that it begins after that), and then waits for ever.
    No `tf.Session.close` ends it.

    Args:
      tasks: the tasks; a host whose name is not known has no connection.
    """
    ends = set()
    for task in tasks:
        with contextlib.suppress(OSError):
            ends |= {(str(address), task.port) for address in resolve_host(task.host)}
    cut = 0
    for each in _sockets():
        with each, contextlib.suppress(OSError):  # not connected, or gone meanwhile
            host, port, *_ = each.getpeername()
            if (host.removeprefix(_MAPPED), port) in ends:
                each.shutdown(socket.SHUT_RDWR)
                cut += 1
    return cut


def _sockets() -> Iterator[socket.socket]:
    """Yields a copy of each socket of this process, of the kinds that have a peer with a port."""
    for name in os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found = socket.socket(fileno=os.dup(int(name)))
                if found.family in (socket.AF_INET, socket.AF_INET6):
                    yield found
                else:
                    found.close()
