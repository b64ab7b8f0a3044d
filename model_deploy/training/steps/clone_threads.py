"""`CloneThreads`: steps of asynchronous clones, with one thread per clone."""

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.cluster import run_unless_refused, unsure_end
from model_deploy.training.steps.report import (
    StepContext,
    StepReport,
    checked_report,
    read_report,
)
from model_deploy.training.steps.runner import HookCalls


class _Made(NamedTuple):
    """A message of a thread: a step was made."""

    values: Any
    at: float
    between: tuple[float, float]


class _Ended(NamedTuple):
    """A message of a thread: it makes no more steps."""

    error: Exception | None


class CloneThreads:
    """Runs clones in threads and returns their reports one by one, like a `StepRunner`.

    Steps are numbered in the order in which their reports arrive.  Fetches of hooks run separately,
    not as part of a step.

    Args:
      session: the session.
      reports: the result of `clone_report_ops`, a float64 vector for each clone.
      hooks: see `HookCalls`.
      first_step: number of steps made before this session.
      max_steps: number of steps after which no clone starts another step; None for no end.
      counts_shared: whether other workers' steps count as well: then a clone starts no step after
        one of its own with the number `max_steps` or more; else all clones together make them.
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
        """Whether a hook has asked to stop."""
        return self._calls.stop_requested

    def run(self, step: int) -> StepReport:
        """Returns the report of the next step that a clone has made.

        Raises:
          NonFiniteLoss: if the step's loss is not finite.
          tf.errors.OutOfRangeError: when the inputs of all clones have ended.
        """
        while isinstance(found := self._done.get(), _Ended):
            if found.error is not None:
                raise found.error
            self._running -= 1
            if not self._running:
                raise tf.errors.OutOfRangeError(None, None, "the inputs of all clones have ended")
        report = checked_report(found.values)
        # Hooks and checkpoints need rising numbers, whatever the order of the clones.
        self._step = max(self._step + 1, report.step if self._counts_shared else 0)
        report = report._replace(step=self._step, made_at=found.at, made_between=found.between)
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
        """Makes steps of one clone in its thread, and queues their reports."""
        error: Exception | None = None
        step, refused = self._first_step, threading.Event()
        try:
            while self._take(step):
                began = time.time()
                values = run_unless_refused(run, refused.set)
                between = began, time.time()
                step = read_report(values).step
                with self._lock:  # in the order of their times
                    self._done.put(_Made(values, time.perf_counter(), between))
        except tf.errors.OutOfRangeError:
            if refused.is_set():
                error = unsure_end()
            self._give_back()
        except Exception as other:
            error = other
        self._done.put(_Ended(error))

    def _take(self, step: int) -> bool:
        """Whether a clone may start a step after `step`; counts the step if so."""
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
        """Uncounts a step that found no input, so that another clone may make it."""
        if self._left is not None:
            with self._lock:
                self._left += 1
