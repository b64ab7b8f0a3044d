"""`TrainingRun`: a run independent of its session: its steps, hooks and end."""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from model_deploy.checkpoints import BestCheckpoint, CheckpointWriter
from model_deploy.optimization import Plateau
from model_deploy.profile import ProfileHook
from model_deploy.rotation import Rest
from model_deploy.trackers import Tracking
from model_deploy.training.ending import saved_at_the_end
from model_deploy.training.evaluators import EvaluatorHook
from model_deploy.training.hooks import CopiesHook, EvaluationHook, Log, SaveHook, SummaryHook
from model_deploy.training.ledger import Ledger
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.pace.pace import Pace
from model_deploy.training.patience import Patience, patience_of
from model_deploy.training.replicas.agreed_saves import AgreedSaves
from model_deploy.training.replicas.early_end import EarlyEnd
from model_deploy.training.replicas.replicas import Replicas
from model_deploy.training.replicas.streamed_metrics import StreamedMetrics
from model_deploy.training.shown.board import Board
from model_deploy.training.shown.metrics import MetricsLog
from model_deploy.training.shown.plots import TrainingPlot
from model_deploy.training.shown.progress import Progress
from model_deploy.training.steps.clone_threads import CloneThreads
from model_deploy.training.steps.course import Course, Stretch
from model_deploy.training.steps.numeric_checks import NumericChecks
from model_deploy.training.steps.report import StepReport, describe_loss
from model_deploy.training.steps.rest import RestOfSteps
from model_deploy.training.steps.runner import StepRunner
from model_deploy.training.stopping import StopSignals
from model_deploy.training.timing import Every, TimedHook
from model_deploy.verification import Verification


class TrainResult(NamedTuple):
    """The result of a run.

    Attributes:
      global_step: number of steps made, including earlier runs.
      total_loss: loss of the last step; None if no step was left to make.
    """

    global_step: int
    total_loss: float | None


@dataclasses.dataclass(frozen=True)
class TrainingRun:
    """A run as `train` was asked for it, independent of its session.

    Attributes:
      options: the settings.
      train_dir: folder of the run's files.
      report: the result of `report_op`, a float64 vector, or for asynchronous clones that of
        `clone_report_ops`, a list of vectors.
      checks: the checks of `check_numerics`, or None.
      summary_op: all summaries, a serialized string scalar, or None.
      writer: the chief's writer of checkpoints; None in other workers, which write no files.
      hooks: the user's hooks.
      max_steps: number of the last step, or None.
      images_per_step: images per step over all clones.
      unit: name of the examples, in place of images.
      evaluate: function of a checkpoint's path that returns metrics by name, or None.
      metric: name of the metric for the best checkpoint and the end of the run.
      shares_steps: whether other workers independently update the same variables.
      copies_difference: the model's, a float64 scalar to check at intervals; or None.
      replicas: the other processes of the cluster; None without a cluster.
      early_end: how all workers end where the chief ends the run early.
      streamed: the model's metrics in training; None without metrics.
      pace: where the time of steps goes, here and in other processes.
      ledger: what the time of this process is spent on.
      verification: makes steps twice at intervals; None if none is.
      agreed_saves: which steps may be saved, where replicas have values of their own; else None.
      rest: what a rotated step leaves to the next one; or None.
      is_alone: whether no other process takes part in a step.
      plateau: the learning rate that follows the evaluations, or None.
      tracking: the trackers of the run, on the chief; or None.
    """

    options: LoopOptions
    train_dir: str
    report: Any
    checks: NumericChecks | None
    summary_op: Any
    writer: CheckpointWriter | None
    hooks: Sequence[Any]
    max_steps: int | None
    images_per_step: int
    unit: str
    evaluate: Callable[[str], Mapping[str, float]] | None
    metric: str
    shares_steps: bool
    pace: Pace
    copies_difference: Any = None
    replicas: Replicas | None = None
    early_end: EarlyEnd = dataclasses.field(default_factory=EarlyEnd)
    streamed: StreamedMetrics | None = None
    ledger: Ledger = dataclasses.field(default_factory=Ledger)
    verification: Verification | None = None
    agreed_saves: AgreedSaves | None = None
    rest: Rest | None = None
    is_alone: bool = True
    plateau: Plateau | None = None
    tracking: Tracking | None = None

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
        rest = None
        if self.rest is not None:
            rest = RestOfSteps(self.rest, session, is_alone=self.is_alone)
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
            metrics, plot, board = self._shown(stack)
            every = self._every("log_every_n_steps", first_step)
            read = None
            if self.streamed is not None:
                read = functools.partial(self.streamed.read, session, in_step)
            log = Log(
                progress,
                metrics,
                plot,
                every,
                board,
                read_metrics=read,
                pace=self.pace,
                ledger=self.ledger,
            )
            patience = self._patience(first_step)
            evaluation = self._evaluation(first_step, progress, metrics, board, patience)
            evaluator = self._evaluator(first_step, progress)
            own = self._own_hooks(
                first_step, metrics, board, stack, evaluation=evaluation, evaluator=evaluator
            )
            hooks = [*self.hooks, *self._asked_first(signals, in_step), *own]
            secs = self.options.wait_for_storage_secs
            leave = functools.partial(self._leave, course)
            describe, may_save = self._describe_bad_step, self._is_known
            with saved_at_the_end(self.writer, course, secs, describe, leave, may_save=may_save):
                if patience is not None and patience.is_over:
                    progress.line(f"{patience}: no more steps are made")
                is_over = patience is not None and patience.is_over
                if patience and evaluation and self._is_owed(patience, first_step):
                    is_over = evaluation.is_over_at(session, first_step)
                if evaluator is not None:
                    is_over = evaluator.is_over()
                if self.early_end.begin(session, is_over, in_step):
                    self._end_early(course)
                else:
                    self._make_steps(course, hooks, in_step, log)
                for hook in self.hooks:
                    hook.end(session)
            self.ledger.spend("saving")
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
            )
        return CloneThreads(
            course.session,
            self.report,
            hooks,
            first_step=course.done.step,
            max_steps=None if math.isinf(stretch.last_step) else int(stretch.last_step),
            counts_shared=stretch.is_shared,
        )

    def _every(self, steps: str, first_step: int, secs: str | None = None) -> Every:
        """Returns an interval from the names of its options."""
        return Every(
            steps=getattr(self.options, steps),
            secs=None if secs is None else getattr(self.options, secs),
            first_step=first_step,
        )

    def _shown(
        self, stack: contextlib.ExitStack
    ) -> tuple[MetricsLog | None, TrainingPlot | None, Board | None]:
        """Returns the files that show how the run goes, on the chief, closed by the stack."""
        if self.writer is None:
            return None, None, None
        storage = self.writer.storage
        plot = TrainingPlot(self.train_dir, self.unit, storage)
        metrics = MetricsLog(self.train_dir, storage, self.tracking)
        board = Board(self.train_dir, self.unit, storage=storage)
        for each in (plot, metrics, board):
            stack.callback(each.close)
        return metrics, plot, board

    def _patience(self, first_step: int) -> Patience | None:
        """Returns the count of evaluations without improvement, on the chief that evaluates."""
        if self.writer is None or self.evaluate is None:
            return None
        return patience_of(self.train_dir, self.metric, self.options, first_step)

    def _is_owed(self, patience: Patience, step: int) -> bool:
        """Whether an earlier process was killed after a step, and before what it evaluates then."""
        every = self.options.eval_every_n_steps
        is_followed = self.options.stop_patience is not None or self.plateau is not None
        if every is None or not is_followed or self.shares_steps:
            return False
        return step > 0 and step % every == 0 and patience.lacks(step)

    def _evaluation(
        self,
        first_step: int,
        progress: Progress,
        metrics: MetricsLog | None,
        board: Board | None,
        patience: Patience | None,
    ) -> EvaluationHook | None:
        """Returns the hook that evaluates, on the chief that does."""
        if not (self.writer and self.evaluate and metrics and board and patience):
            return None
        falls = patience.falls
        return EvaluationHook(
            self.evaluate,
            metric=self.metric,
            falls=falls,
            stop_at=self.options.stop_at_metric,
            patience=patience,
            plateau=self.plateau,
            writer=self.writer,
            best=BestCheckpoint(self.train_dir, self.metric, self.writer.device, falls=falls),
            metrics=metrics,
            board=board,
            progress=progress,
            every=self._every("eval_every_n_steps", first_step),
            last_step=self.max_steps,
        )

    def _evaluator(self, first_step: int, progress: Progress) -> EvaluatorHook | None:
        """Returns the hook that looks at the evaluator's results, on the chief."""
        if self.writer is None or self.options.stop_by is None:
            return None
        every = self._every("log_every_n_steps", first_step)
        return EvaluatorHook(self.train_dir, self.metric, self.options, progress, every)

    def _own_hooks(
        self,
        first_step: int,
        metrics: MetricsLog | None,
        board: Board | None,
        stack: contextlib.ExitStack,
        *,
        evaluation: EvaluationHook | None,
        evaluator: EvaluatorHook | None,
    ) -> Iterator[Any]:
        """Yields the loop's own hooks, as the options ask for them."""
        if self.copies_difference is not None:
            yield CopiesHook(
                self.copies_difference, self._every("copies_check_every_n_steps", first_step)
            )
        if self.writer is None or metrics is None or board is None:
            return
        if self.options.profile_steps is not None:
            profile = ProfileHook(
                self.train_dir,
                self.options.profile_steps,
                first_step,
                lambda: metrics.storage.trying("the profile"),
            )
            stack.callback(profile.close)
            yield profile
        if self.summary_op is not None:
            every = self._every("save_summaries_steps", first_step, "save_summaries_secs")
            yield SummaryHook(board, self.summary_op, every, self.max_steps)
        if evaluation is not None:
            yield self._timed(evaluation, "evaluation")
        if evaluator is not None:
            yield evaluator
        every = self._every("save_interval_steps", first_step, "save_interval_secs")
        yield self._timed(SaveHook(self.writer, every, self.max_steps, self._is_trusted), "saving")

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

    def _is_trusted(self, step: int) -> bool:
        """Whether a step may be saved: if steps are made twice, one that is."""
        if self.agreed_saves is not None and not self.agreed_saves.may_save(step):
            return False
        return self.verification is None or self.verification.due(step)

    def _timed(self, hook: Any, kind: str) -> TimedHook:
        """Returns a hook that tells how long it takes."""
        aside = functools.partial(self.ledger.set_aside, kind)
        return TimedHook(hook, aside, self.pace.spending.add_saving)

    def _describe_bad_step(self, report: StepReport) -> str:
        """Returns one line about a step whose numbers are not finite."""
        parts = [describe_loss(report)]
        if self.checks is not None and report.first_bad >= 0:
            parts.append(f"first in op {self.checks.name(report.first_bad)}")
        if self.writer is not None:
            parts.append(f"last good checkpoint: {self.writer.newest or 'none'}")
        return ", ".join(parts)
