"""`Course`: the progress of a run in one session, one stretch of steps after another."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.cluster import is_refusal, run_unless_refused, unsure_end
from model_deploy.training.steps.clone_threads import CloneThreads
from model_deploy.training.steps.report import StepReport
from model_deploy.training.steps.rest import RestOfSteps
from model_deploy.training.steps.runner import StepRunner
from model_deploy.training.stopping import StopSignals


class Stretch(NamedTuple):
    """A range of steps that are made in the same way.

    Attributes:
      last_step: number of the last step; infinity for no limit.
      is_shared: whether other workers make independent steps meanwhile.
    """

    last_step: float
    is_shared: bool


class Course:
    """Makes steps, and keeps track of the last one.

    Args:
      session: a session that is ready.
      signals: signals that end the run after a step.
      made: called with the global step, at the start and after each step.
      repeats: whether to repeat a step that TensorFlow has refused, of which a part may have run.
      may_end: says of a step whether a signal may end the run after it.
      rest: what rotated steps leave; or None.

    Attributes:
      session, rest: as given.
      done: the report of the last step.
      is_stopped: whether a signal, a hook or another worker has ended the run.
    """

    def __init__(
        self,
        session: Any,
        signals: StopSignals,
        made: Callable[[int], None],
        *,
        repeats: bool = True,
        may_end: Callable[[int], bool] = lambda step: True,
        rest: RestOfSteps | None = None,
    ) -> None:
        self.session, self.rest = session, rest
        self.done = StepReport(global_step(session), 0.0, 0.0, 0.0, -1, 0, ())
        self.is_stopped = False
        self._signals = signals
        self._made = made
        self._repeats = repeats
        self._was_refused = False
        self._may_end = may_end
        made(self.done.step)

    def make(
        self,
        runner: StepRunner | CloneThreads,
        last_step: float,
        log: Callable[[StepReport], None],
        is_over: Callable[[int, bool], bool] = lambda step, stop_requested: stop_requested,
    ) -> None:
        """Makes steps up to `last_step`, the end of the inputs, or a stop.

        Args:
          runner: makes the steps; closed at the end.
          last_step: number of the last step.
          log: called after each step.
          is_over: called after each step, with its number and whether a hook has asked to stop;
            returns whether the run is over.

        Raises:
          tf.errors.AbortedError: where the inputs may have ended for a refused step, see
            `unsure_end`.
        """
        over = False
        with contextlib.closing(runner), self._to_the_end_of_inputs():
            while self.done.step < last_step and not over:
                self.done = self._next(runner)
                self._made(self.done.step)
                log(self.done)
                is_asked = self._signals.received is not None and self._may_end(self.done.step)
                if is_asked and (self.rest is None or self.rest.may_end()):
                    break
                over = is_over(self.done.step, runner.stop_requested)
        if self.rest is not None:
            self.rest.settle()
        if isinstance(runner, CloneThreads):  # its clones may have made further steps
            self.look_again()
        self.is_stopped = self._signals.received is not None or runner.stop_requested or over

    @contextlib.contextmanager
    def _to_the_end_of_inputs(self) -> Iterator[None]:
        """Ends the block, without an error, when the inputs have ended."""
        try:
            yield
        except tf.errors.OutOfRangeError as error:
            if self._was_refused:
                raise unsure_end() from error

    @property
    def is_interrupted(self) -> bool:
        """Whether a signal has ended the run."""
        return self._signals.received is not None

    def look_again(self) -> None:
        """Reads the global step, after others may have made steps."""
        self.done = self.done._replace(step=global_step(self.session))

    def _next(self, runner: StepRunner | CloneThreads) -> StepReport:
        """Makes a step; returns its report, or the previous one if TensorFlow refused the step."""
        try:
            return runner.run(self.done.step + 1)
        except tf.errors.OpError as error:
            if not (self._repeats and is_refusal(error)):
                raise
            self._was_refused = True
            return self.done._replace(step=global_step(self.session))


def global_step(session: Any) -> int:
    """Returns the global step, read in the session; tries again if TensorFlow refuses."""
    return int(run_unless_refused(lambda: session.run(tf.train.get_global_step())))
