"""`close_session`: closes a session without waiting for a process that is gone."""

import contextlib
import threading
from typing import Any

import tensorflow.compat.v1 as tf

# Where all processes are there it takes some milliseconds.
_PATIENCE_SECS = 2.0


def close_session(session: Any, patience_secs: float = _PATIENCE_SECS) -> bool:
    """Closes a session; its steps are cancelled at once.

    TensorFlow then tells every process that has taken part, and waits for all answers. One that
    was lost in the midst of a step never gives its own, and `session.close()` may take for ever.
    What is not answered in time is waited for by a thread that ends with this process.

    Args:
      session: a `tf.Session`; one that is closed is left alone.
      patience_secs: seconds to wait.

    Returns:
      Whether all have answered.
    """

    def close() -> None:
        with contextlib.suppress(tf.errors.OpError):
            session.close()

    thread = threading.Thread(target=close, name="close_session", daemon=True)
    thread.start()
    thread.join(patience_secs)
    return not thread.is_alive()
