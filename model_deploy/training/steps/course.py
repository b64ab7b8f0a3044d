"""The course of a run in one session: its steps, one stretch after another."""

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.cluster import is_refusal, run_unless_refused
from model_deploy.training.steps.clone_threads import CloneThreads
from model_deploy.training.steps.report import StepReport
from model_deploy.training.steps.runner import StepRunner
from model_deploy.training.stopping import StopSignals


class Stretch(NamedTuple):
    """Steps that are made in the same way.

    Attributes:
      last_step: number of the last one; infinity where nothing but an event ends them.
      is_shared: whether others make steps on their own meanwhile.
    """

    last_step: float
    is_shared: bool


class Course:
    """Makes steps, and knows how far the run has come.

    Args:
      session: a session that is ready.
      signals: end the run after a step.
      made: called with the number of the step done before, and of each when it was made.
      repeats: whether a step that TensorFlow has refused may be made again, of which a part may
        have been run.

    Attributes:
      session: as given.
      done: what is known of the last step.
      is_stopped: whether a signal or a hook has ended the run.
    """

    def __init__(
        self,
        session: Any,
        signals: StopSignals,
        made: Callable[[int], None],
        *,
        repeats: bool = True,
    ) -> None:
        self.session = session
        self.done = StepReport(global_step(session), 0.0, 0.0, 0.0, -1, 0, ())
        self.is_stopped = False
        self._signals = signals
        self._made = made
        self._repeats = repeats
        made(self.done.step)

    def make(
        self,
        runner: StepRunner | CloneThreads,
        last_step: float,
        log: Callable[[StepReport], None],
    ) -> None:
        """Makes the steps of a stretch, until its last one, the end of the inputs or a stop.

        Args:
          runner: makes a step; closed at the end.
          last_step: number of the last step.
          log: called after each step.
        """
        with contextlib.closing(runner), contextlib.suppress(tf.errors.OutOfRangeError):
            while self.done.step < last_step and not runner.stop_requested:
                self.done = self._next(runner)
                self._made(self.done.step)
                log(self.done)
                if self._signals.received is not None:
                    break
        if isinstance(runner, CloneThreads):  # clones may have been in a step
            self.look_again()
        self.is_stopped = self._signals.received is not None or runner.stop_requested

    def look_again(self) -> None:
        """Reads the number of the last step, where others may have made some."""
        self.done = self.done._replace(step=global_step(self.session))

    def _next(self, runner: StepRunner | CloneThreads) -> StepReport:
        """Gives the report of one more step, or the last one where TensorFlow has refused."""
        try:
            return runner.run(self.done.step + 1)
        except tf.errors.AbortedError as error:
            if not (self._repeats and is_refusal(error)):
                raise
            return self.done._replace(step=global_step(self.session))


def global_step(session: Any) -> int:
    """The number of steps done, read in the session; asks again where TensorFlow refuses."""
    return int(run_unless_refused(lambda: session.run(tf.train.get_global_step())))
