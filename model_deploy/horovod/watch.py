"""`PeerWatch`: ends a process that waits for another one which is gone."""

import functools
import itertools
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.cluster import Task, close_session, names_of, unreachable

_POLL_SECS = 1.0
_SELDOM = 5
# A call whose ops are not known may need nobody: it counts once it has taken so long.
_UNKNOWN_SECS = 5.0
# Seconds that the program has to end once its session is closed.
_LEAVE_SECS = 5.0


class PeerWatch:
    """A thread that watches the collective ops of this process.

    Another process that is gone is no error until it is needed.  If a session runs collective ops
    meanwhile, which can never end, the thread names the process and closes the session; and if the
    program does not end then, the thread ends it.

    Args:
      tasks: the other processes.
      target: server of the sessions.
      report: called with a line.
      stall_secs: seconds after which a call that waits for others, which are there, is reported.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        target: str,
        report: Callable[[str], Any],
        stall_secs: float = math.inf,
    ) -> None:
        self._tasks = tasks
        self._target = target
        self._report = report
        self._stall_secs = stall_secs
        self._began: dict[int, tuple[Any, float]] = {}
        self._reported: Any = None  # the call that was reported last
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="horovod_watch", daemon=True).start()

    def end(self) -> None:
        """Lets the thread end."""
        self._ended.set()

    def _watch(self) -> None:
        lost = False
        for poll in itertools.count(1):
            if self._ended.wait(_POLL_SECS):
                return
            waiting = self._waiting()
            lasts = any(time.monotonic() - began >= _POLL_SECS for _, began in waiting)
            # Steps that take no time are looked after now and then.
            due = waiting and (lost or lasts or poll % _SELDOM == 0)
            missing = unreachable(self._tasks) if due else []
            if missing and lost:  # twice: the last step of all may just have been ending
                self._give_up(missing)
            lost = bool(missing)
            for call, began in waiting:
                stalled = time.monotonic() - began >= self._stall_secs
                if stalled and not missing and self._reported is not call.frame:
                    self._reported = call.frame
                    self._report(
                        f"a step has waited for {self._stall_secs:g} s; all are there: do their "
                        "tensors have the same names, types, shapes and root_rank in each step?"
                    )

    def _waiting(self) -> list[tuple[internals.Running, float]]:
        """The calls that may wait for other processes, and since when."""
        now = time.monotonic()
        running = [
            each
            for each in internals.running_sessions()
            if tf.compat.as_text(each.session.sess_str) == self._target
        ]
        # The frames are kept, so that no later call gets the number of one of them.
        self._began = {
            id(each.frame): self._began.get(id(each.frame), (each.frame, now)) for each in running
        }
        calls = [(each, self._began[id(each.frame)][1]) for each in running]
        return [(each, began) for each, began in calls if _needs_others(each, now - began)]

    def _give_up(self, missing: Sequence[Task]) -> None:
        self._report(
            f"error: lost the connection to {names_of(missing)}; nobody can go on alone: start all "
            "processes again, they go on from the newest checkpoint"
        )
        for each in internals.running_sessions():
            close_session(each.session)
        if not self._ended.wait(_LEAVE_SECS) and self._waiting():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)


def _needs_others(call: internals.Running, secs: float) -> bool:
    if call.ops is None:
        return secs >= _UNKNOWN_SECS
    return _are_collective(tuple(call.ops))


@functools.lru_cache(maxsize=64)  # most steps are the same
def _are_collective(ops: tuple[Any, ...]) -> bool:
    needed = graph_walk.ancestors(ops, control_inputs=True)
    return any(op.type.startswith("Collective") or graph_walk.calls_functions(op) for op in needed)
