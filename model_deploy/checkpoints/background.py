"""`OneAtATime`: a thread that writes one thing while steps go on."""

import queue
import threading
import time
import weakref
from collections.abc import Callable

from model_deploy.cluster import wait_at_exit
from model_deploy.commands import tell

# Seconds that the next one waits for one that is usually written faster than this.
SHORT_SECS = 1.0
# Seconds after which it is said that somebody waits.
_LONG_SECS = 10.0
# Seconds for a thread to end whose session is closed.
_CLOSED_SECS = 30.0


class _Thread(threading.Thread):
    """Calls the functions that it is given; ends when it is asked to, or nobody holds it."""

    def __init__(self) -> None:
        # As a daemon, it does not keep a process alive that ends without `wait`.
        super().__init__(name="save", daemon=True)
        self.calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def run(self) -> None:
        while (call := self.calls.get()) is not None:
            call()
            del call


class OneAtATime:
    """Runs functions in a thread, one at a time; an error of one comes with the next call.

    Args:
      same_thread: whether all run in one thread, as some libraries keep caches for each thread:
        matplotlib its fonts.

    >>> thread, written = OneAtATime(), []
    >>> thread.start("a number", lambda: written.append(1))
    >>> thread.wait()
    >>> written
    [1]
    """

    def __init__(self, *, same_thread: bool = False) -> None:
        self._same_thread = same_thread
        self._thread: _Thread | None = None
        self._done = threading.Event()
        self._done.set()
        self._what = ""
        self._began = 0.0
        self._last_secs = 0.0
        self._has_skipped = False
        self._error: BaseException | None = None

    def start(self, what: str, run: Callable[[], None]) -> None:
        """Starts a function; call `wait` or `is_free` before.

        Args:
          what: what it writes, in words.
          run: the function.
        """

        def in_thread() -> None:
            try:
                run()
            except BaseException as error:
                self._error = error
            self._last_secs = time.monotonic() - self._began
            self._done.set()

        self._what, self._began, self._has_skipped = what, time.monotonic(), False
        self._done.clear()
        if self._thread is None or not (self._same_thread and self._thread.is_alive()):
            self._thread = _Thread()
            self._thread.start()
            if self._same_thread:
                weakref.finalize(self, self._thread.calls.put, None).atexit = False
        self._thread.calls.put(in_thread)
        if not self._same_thread:
            self._thread.calls.put(None)

    def is_free(self, what: str) -> bool:
        """Whether a function can be started, maybe after a short wait; says so if not.

        The wait is for where checkpoints are small, and asked for at exact steps.

        Args:
          what: what it would write.
        """
        if self.is_running and self._last_secs < SHORT_SECS and not self._has_skipped:
            self._join(SHORT_SECS)
        if not self.is_running:
            self._raise_error()
            return True
        if not self._has_skipped:
            secs = time.monotonic() - self._began
            tell(f"{what} is skipped: {self._what} is still being written, for {secs:.0f} s")
        self._has_skipped = True
        return False

    def wait(self) -> None:
        """Waits for the end of the function; raises its error."""
        self._join(_LONG_SECS)
        if self.is_running:
            tell(f"waiting for {self._what} to be written")
            self._join(None)
        self._raise_error()

    def end(self) -> None:
        """Waits a while for the end of a function whose session is closed; drops its error."""
        self._join(_CLOSED_SECS)
        if self._thread is not None:
            self._thread.calls.put(None)
            if self.is_running:
                wait_at_exit(self._thread)
        self._error = None

    @property
    def is_running(self) -> bool:
        """Whether a function has not ended yet."""
        return not self._done.is_set()

    def _join(self, secs: float | None) -> None:
        if self._done.wait(secs) and self._thread is not None and not self._same_thread:
            self._thread.join()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
