"""`StallWatch`: reports which tasks a step waits for, and ends a step that waits for too long."""

import faulthandler
import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy.cluster import LostSteps, StandStill, Task, close_session, names_of, unreachable

# Seconds without a step after which missing tasks are reported, and between two reports.
REPORT_SECS = 5.0
# Seconds after which a step that lacks a task is ended when the run is to stop.
_STOP_SECS = 5.0


def thread_stacks() -> str:
    """Returns tracebacks of all Python threads, also of those that wait in TensorFlow."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().rstrip()


class StallWatch:
    """Watches the steps of a session in a thread, inside of a `with` block.

    While a step takes long it reports unreachable tasks; after `timeout` seconds it closes the
    session, which ends the step.  It waits for a task that is slow or stopped but reachable.  After
    `stacks_after` seconds it prints, once per step, what all Python threads are doing.  A step that
    TensorFlow has lost is ended, see `LostSteps`.  The time before this process stood still, as one
    that was stopped, does not count.

    Args:
      session: the session that makes the steps.
      tasks: the tasks that steps depend on.
      timeout: seconds after which a step that lacks a task is ended.
      describe: returns the error for the names of the missing tasks.
      report: called with each line to print.
      stop: returns whether the run is to stop; a step that lacks a task is then ended.
      stacks_after: seconds without a step after which the stacks of all threads are printed.
      lost_after: seconds after which a step counts as lost though no task is missing.

    Attributes:
      error: why the session was closed, or None.
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
        lost_after: float = math.inf,
    ) -> None:
        self.error: OSError | None = None
        self._describe = describe
        self._session = session
        self._tasks = tasks
        self._timeout = timeout
        self._report = report
        self._stop = stop
        self._stacks_after = stacks_after
        self._lost = LostSteps(tasks, lost_after, report)
        self._shown: float | None = None  # when the step began whose stacks were printed
        self._began: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def in_step(self, running: bool) -> None:
        """Is told that a step begins or has ended; only steps are watched."""
        now = time.monotonic()
        if not running and self._began is not None:
            self._lost.note(now - self._began)
        self._began = now if running else None

    def __enter__(self) -> "StallWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        wait = min(REPORT_SECS, self._timeout)
        reported = -math.inf
        still = StandStill()
        while not still.wait(self._ended, min(1.0, wait, self._stacks_after)):
            began, now = self._began, time.monotonic()
            if began is None:
                continue
            since = max(began, still.over_at)
            if now - since >= self._stacks_after and self._shown != began:
                self._show_stacks(began, now)
            stops = self._stop() and now - since >= _STOP_SECS
            if not stops and now - max(since, reported) < wait:
                continue
            reported = now
            missing = unreachable(self._tasks)
            if self._began != began:
                continue
            if not missing:
                self._lost.end(since, now)
                continue
            if now - since >= self._timeout:
                self.error = self._describe(names_of(missing))
                close_session(self._session)
                return
            if stops:
                self._report(f"the step is given up, without {names_of(missing)}")
                close_session(self._session)
                return
            self._report(f"waiting for {names_of(missing)}")

    def _show_stacks(self, began: float, now: float) -> None:
        """Reports missing tasks, if any, and the stacks of this process's threads."""
        missing = unreachable(self._tasks)
        whom = "all tasks can be reached" if self._tasks else "there is no other task"
        if missing:
            whom = f"waiting for {names_of(missing)}"
        if self._began == began:
            self._shown = began
            self._report(f"no step for {now - began:.0f} s: {whom}\n{thread_stacks()}")
