"""Steps of asynchronous clones: one thread for each, none waits for another."""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.cluster import run_unless_refused
from model_deploy.training.steps.report import (
    StepContext,
    StepReport,
    checked_report,
    read_report,
)
from model_deploy.training.steps.runner import HookCalls


class _Made(NamedTuple):
    """A thread has made a step."""

    values: Any
    at: float


class _Ended(NamedTuple):
    """A thread makes no more steps."""

    error: Exception | None


class CloneThreads:
    """Runs the clones and gives their reports one by one, as a `StepRunner` does.

    The steps of the reports are numbered in the order in which they arrive.  What hooks
    fetch is fetched beside the steps, not in one of them.

    Args:
      session: where to run.
      reports: what `clone_report_ops` returned, a float64 vector for each clone.
      hooks: see `HookCalls`.
      first_step: number of steps done before.
      max_steps: number of steps after which no clone starts another one; None for no end.
      counts_shared: whether others count, too: then a clone starts no step after one of its
        own with a number of `max_steps` or more, and otherwise all make `max_steps` in all.
    """

    def __init__(
        self,
        session: Any,
        reports: Sequence[Any],
        hooks: Sequence[Any],
        *,
        first_step: int,
        max_steps: int | None,
        counts_shared: bool = False,
    ) -> None:
        self._session = session
        self._calls = HookCalls(hooks)
        self._step = first_step
        self._first_step = first_step
        self._counts_shared = counts_shared
        self._shared_last = max_steps if counts_shared else None
        self._left = None if max_steps is None or counts_shared else max_steps - first_step
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run_clone, args=[session.make_callable(report)])
            for report in reports
        ]
        self._running = len(self._threads)
        for thread in self._threads:
            thread.start()

    @property
    def stop_requested(self) -> bool:
        """Whether a hook has asked for the end of the run."""
        return self._calls.stop_requested

    def run(self, step: int) -> StepReport:
        """The report of the next step that a clone has made.

        Raises:
          NonFiniteLoss: if its loss is not finite.
          tf.errors.OutOfRangeError: when the inputs of all clones have ended.
        """
        while isinstance(found := self._done.get(), _Ended):
            if found.error is not None:
                raise found.error
            self._running -= 1
            if not self._running:
                raise tf.errors.OutOfRangeError(None, None, "the inputs of all clones have ended")
        report = checked_report(found.values)
        # Hooks and checkpoints want numbers that rise, whichever clone comes first.
        self._step = max(self._step + 1, report.step if self._counts_shared else 0)
        report = report._replace(step=self._step, made_at=found.at)
        if self._calls.choose(self._step):
            context = StepContext(tf.train.SessionRunArgs(None), self._session)
            fetches = self._calls.before(context)
            feeds, options = self._calls.feeds_and_options()
            metadata = tf.RunMetadata()
            values = self._session.run(fetches, feeds or None, options, metadata) if fetches else {}
            context.report = report
            self._calls.after(context, values, metadata)
        return report

    def close(self) -> None:
        """Lets every clone finish its step and ends the threads."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run_clone(self, run: Any) -> None:
        error: Exception | None = None
        step = self._first_step
        try:
            while self._take(step):
                values = run_unless_refused(run)
                step = read_report(values).step
                with self._lock:  # in the order of their times
                    self._done.put(_Made(values, time.perf_counter()))
        except tf.errors.OutOfRangeError:
            self._give_back()
        except Exception as other:
            error = other
        self._done.put(_Ended(error))

    def _take(self, step: int) -> bool:
        """Whether a clone may start one after `step`; counts it, so that they end in time."""
        if self._stopping.is_set():
            return False
        if self._shared_last is not None:
            return step < self._shared_last
        if self._left is None:
            return True
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def _give_back(self) -> None:
        """Lets another clone make a step that was counted and has found no input."""
        if self._left is not None:
            with self._lock:
                self._left += 1
