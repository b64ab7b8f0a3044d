"""Ends this process's connections to other tasks, as a lost network does, and so a lost step."""

import contextlib
import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from model_deploy.cluster.network import resolve_host
from model_deploy.processes import Task

_DESCRIPTORS = "/dev/fd"
_MAPPED = "::ffff:"  # an IPv4 address as one of IPv6
# A step counts as lost after so many times the longest one, of so many.
_TIMES, _STEPS = 20.0, 10
# One of the first steps, which prepare the graph, after so many seconds.
_FIRST_SECS = 1800.0


class LostSteps:
    """Ends steps that TensorFlow has lost, told by how long they take: cuts their connections.

    Args:
      tasks: the tasks that steps depend on; without any no step can be lost.
      after: seconds after which a step counts as lost, if it takes 20 times as long as the longest
        of ten or more before it, too, without the first.  One of the first ten has half an hour,
        or these seconds if they are more.
      report: called with each line to print.
      is_sure: asked before a step is ended, which goes on while this returns False.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        after: float,
        report: Callable[[str], Any] = print,
        *,
        is_sure: Callable[[], bool] = lambda: True,
    ) -> None:
        self._tasks, self._after, self._report, self._is_sure = tasks, after, report, is_sure
        self._made, self._longest = 0, 0.0
        self._cut: float | None = None  # when the step began whose connections were cut

    def note(self, secs: float) -> None:
        """Is told how many seconds a step took."""
        # The first one prepares the graph and waits for others; it counts until there is a second.
        self._longest = secs if self._made == 1 else max(self._longest, secs)
        self._made += 1

    def counts_as_lost(self, secs: float, least: float) -> bool:
        """Whether a step has taken `least` seconds, and 20 times as long as the longest before it.

        Args:
          secs: how long it has taken.
          least: the seconds; False in any case where no step can be lost.
        """
        return bool(self._tasks) and secs >= max(least, _TIMES * self._longest)

    def end(self, began: float, now: float) -> None:
        """Cuts the connections of a step that counts as lost, once.

        Args:
          began: when the step began, in seconds by any clock.
          now: the time by the same clock; all tasks can be reached.
        """
        secs = now - began
        least = self._after if self._made >= _STEPS else max(self._after, _FIRST_SECS)
        if not self.counts_as_lost(secs, least):
            return
        if self._cut == began or not self._is_sure():
            return
        self._cut = began
        self.cut(f"no step for {secs:.0f} s, and all tasks answer")

    def cut(self, reason: str) -> None:
        """Cuts the connections to all tasks, if there are any, and says so with the reason."""
        if self._tasks:
            self._report(
                f"{reason}: cutting {cut_connections(self._tasks)} connections to them, as "
                "TensorFlow may have lost it"
            )


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
