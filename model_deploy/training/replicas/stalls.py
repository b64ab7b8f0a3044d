"""`StallWatch`: says for whom a step waits, and ends one that waits for too long."""

import faulthandler
import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy.cluster import Task, close_session, names_of, unreachable

# Seconds without a step after which a missing task is named, and between such lines.
REPORT_SECS = 5.0
# Seconds that a step with a task missing may have taken when it is asked to stop.
_STOP_SECS = 5.0


def thread_stacks() -> str:
    """What every Python thread is doing, those that wait in TensorFlow included, as tracebacks."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().rstrip()


class StallWatch:
    """In a `with` block, a thread that watches the steps made in a session.

    While no step is made it names the tasks that cannot be reached; after
    `timeout` seconds it closes the session, which ends the step.  A task that is slow, or
    stopped, but there, is waited for.  After `stacks_after` seconds it says so, and prints once
    for the step what all Python threads are doing.

    Args:
      session: that of the steps.
      tasks: the tasks that steps need.
      timeout: seconds without a step, with a task missing, after which it ends.
      describe: makes the error, of the names of the missing tasks.
      report: called with a line.
      stop: whether the run is asked to stop; a step that a missing task holds up ends then.
      stacks_after: seconds without a step after which the stacks of all threads are printed.

    Attributes:
      error: why it has closed the session, or None.
    """

    def __init__(
        self,
        session: Any,
        tasks: Sequence[Task],
        timeout: float,
        describe: Callable[[str], OSError],
        *,
        report: Callable[[str], Any] = print,
        stop: Callable[[], bool] = lambda: False,
        stacks_after: float = math.inf,
    ) -> None:
        self.error: OSError | None = None
        self._describe = describe
        self._session = session
        self._tasks = tasks
        self._timeout = timeout
        self._report = report
        self._stop = stop
        self._stacks_after = stacks_after
        self._shown: float | None = None  # when the step began whose stacks were printed
        self._began: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def in_step(self, running: bool) -> None:
        """A step begins, or has ended; what happens between steps is not watched."""
        self._began = time.monotonic() if running else None

    def __enter__(self) -> "StallWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = min(REPORT_SECS, self._timeout)
        reported = -math.inf
        while not self._ended.wait(min(1.0, wait, self._stacks_after)):
            began, now = self._began, time.monotonic()
            if began is None:
                continue
            if now - began >= self._stacks_after and self._shown != began:
                self._show_stacks(began, now)
            stops = self._stop() and now - began >= _STOP_SECS
            if not stops and now - max(began, reported) < wait:
                continue
            reported = now
            missing = unreachable(self._tasks)
            if not missing or self._began != began:
                continue
            if now - began >= self._timeout:
                self.error = self._describe(names_of(missing))
                close_session(self._session)
                return
            if stops:
                self._report(f"the step is given up, without {names_of(missing)}")
                close_session(self._session)
                return
            self._report(f"waiting for {names_of(missing)}")

    def _show_stacks(self, began: float, now: float) -> None:
        """Says who is missing, if anyone is, and what the threads of this process are doing."""
        missing = unreachable(self._tasks)
        whom = "all tasks can be reached" if self._tasks else "there is no other task"
        if missing:
            whom = f"waiting for {names_of(missing)}"
        if self._began == began:
            self._shown = began
            self._report(f"no step for {now - began:.0f} s: {whom}\n{thread_stacks()}")
