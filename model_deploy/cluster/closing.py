"""`close_session`: closes a session without waiting for a process that is gone."""

import atexit
import contextlib
import os
import sys
import threading
from typing import Any, NoReturn

import tensorflow.compat.v1 as tf

# Where all processes are there it takes some milliseconds.
_PATIENCE_SECS = 2.0
# The end of this process waits for what is still to come: most answers come when others end.
_AT_EXIT_SECS = 3.0
_NAME = "close_session"


def close_session(session: Any, patience_secs: float = _PATIENCE_SECS) -> bool:
    """Closes a session; its steps are cancelled at once.

    TensorFlow then tells every process that has taken part, and waits for all answers. One that
    was lost in the midst of a step never gives its own, and `session.close()` may take for ever.
    What is not answered in time is waited for by a thread, which the end of this process waits for
    for `_AT_EXIT_SECS` more.

    Args:
      session: a `tf.Session`; one that is closed is left alone.
      patience_secs: seconds to wait.

    Returns:
      Whether all have answered.
    """

    def close() -> None:
        with contextlib.suppress(tf.errors.OpError):
            session.close()

    thread = threading.Thread(target=close, name=_NAME, daemon=True)
    thread.start()
    thread.join(patience_secs)
    if thread.is_alive():
        # Threads that come back from C++ while Python ends are ended by force, and C++ then aborts.
        atexit.register(thread.join, _AT_EXIT_SECS)
    return not thread.is_alive()


def end_process(code: int) -> NoReturn:
    """Ends the process, as `sys.exit` does, but for what may come in while Python ends.

    A thread of `close_session` that is still without its answer gets `_AT_EXIT_SECS`. If that is
    not enough the process ends at once, with the code that it is to have: an answer in its last
    moments would abort it.

    Args:
      code: its exit status.
    """
    closing = [thread for thread in threading.enumerate() if thread.name == _NAME]
    for thread in closing:
        thread.join(_AT_EXIT_SECS)
    if any(thread.is_alive() for thread in closing):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
