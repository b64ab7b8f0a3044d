"""`Beat`: calls a function again and again in a thread."""

import threading
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import wait_at_exit

# Seconds to wait for the last call, and between two calls of which the first had no answer.
_END_SECS = 1.0


class Beat:
    """Calls a function in a thread, at intervals, while a `with` block runs.

    Args:
      call: the function; if it raises an error of TensorFlow it is called again.
      secs: seconds between the end of a call and the next one.
      close: called in the thread when the block has ended.
    """

    def __init__(
        self, call: Callable[[], Any], secs: float, close: Callable[[], Any] = lambda: None
    ) -> None:
        self._call = call
        self._secs = secs
        self._close = close
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beat", daemon=True)

    def __enter__(self) -> "Beat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(_END_SECS)
        if self._thread.is_alive():
            wait_at_exit(self._thread)

    def _run(self) -> None:
        secs = self._secs
        while not self._ended.wait(secs):
            try:
                self._call()
                secs = self._secs
            # A closed session raises RuntimeError.
            except (tf.errors.OpError, RuntimeError):
                secs = max(self._secs, _END_SECS)
        self._close()
