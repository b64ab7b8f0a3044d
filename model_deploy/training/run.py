"""`TrainingRun`: a run independent of its session: its steps, hooks and end."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from model_deploy.training.ending import saved_at_the_end
from model_deploy.training.hooks import Log
from model_deploy.training.own_hooks import OwnHooks
from model_deploy.training.replicas.agreed_saves import AgreedSaves
from model_deploy.training.run_parts import RunParts
from model_deploy.training.shown.progress import Progress
from model_deploy.training.steps.clone_threads import CloneThreads
from model_deploy.training.steps.course import Course, Stretch
from model_deploy.training.steps.report import StepReport, describe_loss
from model_deploy.training.steps.rest import RestOfSteps
from model_deploy.training.steps.runner import StepRunner
from model_deploy.training.stopping import StopSignals


class TrainResult(NamedTuple):
    """The result of a run.

    Attributes:
      global_step: number of steps made, including earlier runs.
      total_loss: loss of the last step; None if no step was left to make.
    """

    global_step: int
    total_loss: float | None


class TrainingRun(RunParts):
    """A run as `train` was asked for it, and how it is made to its end in a session."""

    def to_the_end(
        self,
        session: Any,
        signals: StopSignals,
        made: Callable[[int], None] = lambda step: None,
        in_step: Callable[[bool], None] = lambda running: None,
    ) -> TrainResult:
        """Makes all remaining steps in a session that is ready.

        Args:
          session: the session.
          signals: end the run after a step.
          made: called with the global step, at the start and after each step.
          in_step: called with True before each step and with False after it.
        """
        repeats = self.replicas is None or self.replicas.repeats_steps
        rest = None if self.rest is None else RestOfSteps(self.rest, session)
        course = Course(session, signals, made, repeats=repeats, may_end=self._is_known, rest=rest)
        first_step = course.done.step
        in_step = self.pace.spending.around(in_step)
        self.ledger.goes_on_from(first_step)
        with contextlib.ExitStack() as stack:
            stack.enter_context(
                self.pace.beside(session, first_step, lambda: signals.received is not None)
            )
            progress = Progress(
                first_step,
                self.max_steps,
                self.images_per_step,
                unit=self.unit,
                shares_steps=self.shares_steps,
            )
            stack.enter_context(progress)
            own = OwnHooks(self, first_step, progress, stack)
            log = own.log(session, in_step)
            hooks = [*self.hooks, *self._asked_first(signals, in_step), *own.hooks()]
            secs = self.options.wait_for_storage_secs
            leave = functools.partial(self._leave, course)
            describe, may_save = self._describe_bad_step, self._is_known
            with saved_at_the_end(self.writer, course, secs, describe, leave, may_save=may_save):
                if self.early_end.begin(session, own.is_over(session), in_step):
                    self._end_early(course)
                else:
                    self._make_steps(course, hooks, in_step, log)
                for hook in self.hooks:
                    hook.end(session)
        self.ledger.spend("saving")  # the picture of the run, too
        done = course.done
        self._leave(course)
        self.ledger.spend("waiting")
        return TrainResult(done.step, done.loss if done.step > first_step else None)

    def _make_steps(
        self, course: Course, hooks: Sequence[Any], in_step: Callable[[bool], None], log: Log
    ) -> None:
        for stretch in self._stretches():
            if self.replicas is not None and self.replicas.shares_steps and not stretch.is_shared:
                self.replicas.wait_for_others(course.session)
                course.look_again()
            course.make(
                self._runner(stretch, course, hooks, in_step),
                stretch.last_step,
                log.add,
                lambda step, stop: self.early_end.after_step(course.session, step, stop, in_step),
            )
            if course.is_stopped:
                self._end_early(course)
                return

    def _end_early(self, course: Course) -> None:
        """Lets other workers end, on the chief, unless a signal ends this process alone."""
        if self.replicas is None or self.writer is None or course.is_interrupted:
            return
        session = course.session
        self.early_end.announce(session)
        self.replicas.wait_for_others(session, lambda: self.early_end.wake(session))
        course.look_again()

    def _stretches(self) -> Iterator[Stretch]:
        """Yields the stretches of steps that are left to make, in order.

        If other workers make independent steps, the chief makes the last few steps alone, so that
        the run ends at exactly `max_steps`.
        """
        last_step = math.inf if self.max_steps is None else self.max_steps
        if self.replicas is not None and self.replicas.shares_steps:
            shared = last_step
            if self.max_steps is not None:
                shared = self.replicas.last_shared_step(self.max_steps)
            yield Stretch(shared, is_shared=True)
            if self.writer is None:
                return
        yield Stretch(last_step, is_shared=False)

    def _leave(self, course: Course) -> None:
        """Ends the run for the other processes; a worker reports its last step to the chief."""
        replicas, session = self.replicas, course.session
        if replicas is None or course.is_interrupted:
            return
        if self.writer is None:
            replicas.leave(session, course.done.step)
        else:
            if not replicas.shares_steps:
                replicas.wait_for_others(session)
            replicas.end_servers(session)

    def _runner(
        self,
        stretch: Stretch,
        course: Course,
        hooks: Sequence[Any],
        in_step: Callable[[bool], None],
    ) -> StepRunner | CloneThreads:
        """Returns the object that makes the steps of a stretch."""
        if not isinstance(self.report, list):
            verification = self.verification
            return StepRunner(
                course.session,
                self.report,
                hooks,
                in_step,
                verification=verification,
                rest=course.rest,
                repeats=self.replicas is not None and self.replicas.shared is None,
            )
        return CloneThreads(
            course.session,
            self.report,
            hooks,
            first_step=course.done.step,
            max_steps=None if math.isinf(stretch.last_step) else int(stretch.last_step),
            counts_shared=stretch.is_shared,
        )

    def _asked_first(
        self, signals: StopSignals, in_step: Callable[[bool], None]
    ) -> Iterator[AgreedSaves]:
        """Yields what brings the values of all replicas, before hooks that save them."""
        saves, every = self.agreed_saves, self.options.eval_every_n_steps
        if saves is None:
            return
        evaluates = self.evaluate is not None and self.writer is not None
        saves.in_step = in_step
        saves.wants = lambda step: (
            signals.received is not None or (evaluates and every is not None and step % every == 0)
        )
        yield saves

    def _is_known(self, step: int) -> bool:
        """Whether all that a checkpoint of a step needs is in this process."""
        return self.agreed_saves is None or self.agreed_saves.is_known(step)

    def _describe_bad_step(self, report: StepReport) -> str:
        """Returns one line about a step whose numbers are not finite."""
        parts = [describe_loss(report)]
        if self.checks is not None and report.first_bad >= 0:
            parts.append(f"first in op {self.checks.name(report.first_bad)}")
        if self.writer is not None:
            parts.append(f"last good checkpoint: {self.writer.newest or 'none'}")
        return ", ".join(parts)
