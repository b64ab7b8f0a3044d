"""`close_session`: closes a session without waiting for a process that is gone."""

import atexit
import concurrent.futures
import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from model_deploy.cluster.end_of_process import AT_EXIT_SECS, CLOSING

# Where all processes are there it takes some milliseconds.
_PATIENCE_SECS = 2.0
# Seconds between two looks at whether a session was closed in vain.
_POLL_SECS = 0.1

_Value = TypeVar("_Value")
# Attribute of a session that was closed, and has not ended in time.
_UNANSWERED = "_model_deploy_unanswered"
# Attribute of a thread for which the end of this process waits.
_AWAITED = "_model_deploy_awaited"


def close_session(session: Any, patience_secs: float = _PATIENCE_SECS) -> bool:
    """Closes a session; its steps are cancelled at once.

    A session without a server is closed right here.  For one with a server TensorFlow tells every
    process that has taken part, and waits for all answers. A process that was lost in the midst
    of a step never answers, and `session.close()` may take for ever. A thread goes on waiting for
    answers that have not come in time; at its end this process gives the thread `AT_EXIT_SECS`
    more.

    Args:
      session: a `tf.Session`; if it is closed already, nothing is done.
      patience_secs: seconds to wait.

    Returns:
      Whether all have answered.
    """

    def close() -> None:
        with contextlib.suppress(tf.errors.OpError):
            session.close()

    if not session.sess_str:
        close()
        return True
    thread = threading.Thread(target=close, name=CLOSING, daemon=True)
    wait_at_exit(thread)  # from the start: where this is not the main thread, that one may end
    thread.start()
    thread.join(patience_secs)
    if thread.is_alive():
        setattr(session, _UNANSWERED, True)
    return not thread.is_alive()


def wait_at_exit(thread: threading.Thread) -> None:
    """Lets Python end well while a thread may still come back from C++.

    At the end of this process the thread gets `AT_EXIT_SECS`.  After that, Python ends it by force
    when it comes back, and C++ takes that for an error, for which it aborts the process
    (`std::terminate`).  The thread waits for ever instead, and the process ends as it would.

    Args:
      thread: one that is no longer needed by then, such as one whose session is closed.
    """
    setattr(thread, _AWAITED, True)


def _awaited() -> list[threading.Thread]:
    """The threads that still run, of which `wait_at_exit` was told."""
    return [thread for thread in threading.enumerate() if hasattr(thread, _AWAITED)]


@atexit.register
def _end_beside() -> None:
    waited: list[threading.Thread] = []
    # One of them may start another.
    while left := [thread for thread in _awaited() if thread not in waited]:
        left[0].join(AT_EXIT_SECS)
        waited.append(left[0])
    if _awaited():
        with contextlib.suppress(OSError, AttributeError):  # C++ of another kind
            set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
            set_terminate.argtypes, set_terminate.restype = [ctypes.c_void_p], ctypes.c_void_p
            set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))


def run_until_closed(session: Any, call: Callable[[], _Value]) -> _Value:
    """Calls a function that runs ops; gives it up once the session was closed without an answer.

    For the first run of ops that processes exchange values by.  TensorFlow asks worker 0 for a
    number before it, and where worker 0 is gone it asks again for ever, in
    `MasterSession::NewStepId`, which heeds neither the end of the session nor `GRPC_FAIL_FAST`.
    So the call is made in a thread, which in that case is never ended, and keeps its graph.

    Args:
      session: the `tf.Session` of the ops; without a server the function is called right here.
      call: the function; it is called once.

    Returns:
      The value that the function returns.

    Raises:
      tf.errors.CancelledError: if `close_session` has given up waiting for the session.
      Exception: the exception of the function.
    """
    if not session.sess_str:
        return call()
    outcome: concurrent.futures.Future[_Value] = concurrent.futures.Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="run_until_closed", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_POLL_SECS)
        if getattr(session, _UNANSWERED, False) and not outcome.done():
            raise tf.errors.CancelledError(None, None, "the session was closed while it ran")
    return outcome.result()
