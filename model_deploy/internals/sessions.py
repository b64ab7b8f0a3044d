"""Sessions of this process: where they open, and which of them are running ops.

Seen in TensorFlow 2.16 to 2.21.
"""

import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow.python.client import session as session_lib


def opening_sessions_by(place: Callable[[Any], tuple[str, Any]]) -> Callable[[], None]:
    """Lets every new session that names no server open where a function says.

    Wraps `session.BaseSession.__init__`.

    Args:
      place: takes the `tf.ConfigProto` of the session, or None; returns the target and the
        `tf.ConfigProto` with which it opens.

    Returns:
      A function that ends it.
    """
    before = session_lib.BaseSession.__init__

    def opened(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        if not target:
            target, config = place(config)
        before(self, target, graph, config)

    def end() -> None:
        session_lib.BaseSession.__init__ = before

    session_lib.BaseSession.__init__ = opened
    return end


class Running(NamedTuple):
    """A session that a thread waits for.

    Attributes:
      session: the `tf.Session`.
      ops: the ops that are fetched; None where that is not known, as of Keras' functions.
      frame: the call; the same object while it lasts.
    """

    session: Any
    ops: list[Any] | None
    frame: Any


def running_sessions() -> list[Running]:
    """The sessions in which threads of this process are running ops now.

    Wraps `session.BaseSession._run` and `session.BaseSession._Callable.__call__`, whose frames it
    looks for.
    """
    found = []
    for innermost in sys._current_frames().values():
        frame: types.FrameType | None = innermost
        while frame is not None:
            if frame.f_code is session_lib.BaseSession._run.__code__:
                found.append(_of_run(frame))
            elif frame.f_code is session_lib.BaseSession._Callable.__call__.__code__:
                found.append(Running(frame.f_locals["self"]._session, None, frame))
            frame = frame.f_back
    return found


def _of_run(frame: types.FrameType) -> Running:
    values = frame.f_locals
    fetched, targets = values.get("final_fetches"), values.get("final_targets")
    ops = None if targets is None else [*(tensor.op for tensor in fetched or ()), *targets]
    return Running(values["self"], ops, frame)
