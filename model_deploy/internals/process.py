"""What a process does outside of graphs: notices, determinism, sessions, records of files.

Seen in TensorFlow 2.16 to 2.21.
"""

import os
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import config, errors
from tensorflow.python.lib.io import tf_record
from tensorflow.python.util import deprecation


def ops_are_deterministic() -> bool:
    """Whether the program has called `tf.config.experimental.enable_op_determinism()`.

    Wraps `config.is_op_determinism_enabled`.
    """
    return bool(config.is_op_determinism_enabled())


def hide_deprecations() -> None:
    """Stops TensorFlow's warnings about deprecated names in this process.

    A program written for TensorFlow 1 would print many of them.

    Wraps `deprecation._PRINT_DEPRECATION_WARNINGS`.
    """
    deprecation._PRINT_DEPRECATION_WARNINGS = False


def inline_callable(session: Any, fetch: Any) -> Callable[[], Any]:
    """Returns a function that fetches a tensor in the calling thread.

    The fetch is resolved once, here, and not in each call, which takes some 10 us; the graph is
    optimized once more for it.  It is C++'s `Session::MakeCallable`, not Python's
    `Session.make_callable`.

    Wraps `Session._make_callable_from_options`.

    Args:
      session: a `tf.Session` of this process; servers do not offer it.
      fetch: a tensor of any shape.

    Returns:
      A function that returns the tensor's value, a NumPy array.
    """
    options = config_pb2.CallableOptions(fetch=[fetch.name])
    options.run_options.inter_op_thread_pool = -1
    call = session._make_callable_from_options(options)
    return lambda: call()[0]


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


def heeding_errors_of_sessions(heed: Callable[[Any, Any], object]) -> Callable[[], None]:
    """Lets a function hear of each error of a session's run before its caller does.

    Wraps `session.BaseSession._do_call`.

    Args:
      heed: is called with the session and the `tf.errors.OpError`, and may raise another.

    Returns:
      A function that ends it.
    """
    before = session_lib.BaseSession._do_call

    def called(self: Any, call: Any, *arguments: Any) -> Any:
        try:
            return before(self, call, *arguments)
        except errors.OpError as error:
            heed(self, error)
            raise

    def end() -> None:
        session_lib.BaseSession._do_call = before

    session_lib.BaseSession._do_call = called
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


def record_at(path: str, offset: int) -> bytes | None:
    """Returns the data of the record at an offset of a TFRecord file, on any file system.

    Wraps `tf_record.tf_record_random_reader`, which is unbuffered.

    Args:
      path: the file.
      offset: byte offset of the record's length field.

    Returns:
      The data; None at the end of the file, or for a wrong checksum.

    Raises:
      tf.errors.OpError: if the file cannot be read.
    """
    try:
        data: bytes = tf_record.tf_record_random_reader(os.fsencode(path)).read(offset)[0]
    except (errors.DataLossError, IndexError):
        return None
    return data
