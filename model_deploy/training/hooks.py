"""The training loop's own hooks, which act at intervals: summaries, saves, evaluations, checks."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import BestCheckpoint, CheckpointWriter
from model_deploy.optimization import Plateau
from model_deploy.training.ledger import Ledger
from model_deploy.training.pace.pace import Pace
from model_deploy.training.patience import Patience
from model_deploy.training.shown.board import Board
from model_deploy.training.shown.metrics import MetricsLog
from model_deploy.training.shown.plots import TrainingPlot
from model_deploy.training.shown.progress import Progress
from model_deploy.training.steps.report import StepContext, StepReport
from model_deploy.training.timing import Every


class _IntervalHook(tf.train.SessionRunHook):
    """A hook that takes part in steps at intervals, and in the last step if that is given.

    Args:
      every: the interval; the subclass calls `every.done`.
      last_step: a step that is always due, the last of the run; or None.
    """

    def __init__(self, every: Every, last_step: int | None = None) -> None:
        self._every = every
        self._last_step = last_step

    def due(self, step: int) -> bool:
        """Whether the hook takes part in a step."""
        return step == self._last_step or self._every.due(step)


class SummaryHook(_IntervalHook):
    """Fetches the summaries of a step and appends them to TensorBoard's events.

    Args:
      board: the events of the run.
      summary_op: a serialized string scalar.
      every: the interval.
      last_step: the last step of the run, if it is known.
    """

    def __init__(self, board: Board, summary_op: Any, every: Every, last_step: int | None) -> None:
        super().__init__(every, last_step)
        self._board = board
        self._summary_op = summary_op
        self._graph_is_written = False

    def before_run(self, run_context: Any) -> Any:
        return tf.train.SessionRunArgs(self._summary_op)

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        if not self._graph_is_written:
            self._board.add_graph(run_context.session.graph)
            self._graph_is_written = True
        step = run_context.report.step
        self._board.add_summary(run_values.results, step)
        self._every.done(step)


class Log:
    """Shows progress, and writes it to `metrics.jsonl`, `training.png` and TensorBoard.

    The loop calls it after the hooks of a step, when the duration of the step is known.
    """

    def __init__(
        self,
        progress: Progress,
        metrics: MetricsLog | None,
        plot: TrainingPlot | None,
        every: Every,
        board: Board | None = None,
        *,
        read_metrics: Callable[[], Mapping[str, float]] | None = None,
        pace: Pace | None = None,
        ledger: Ledger,
    ) -> None:
        self._board = board
        self._pace = pace
        self._read_metrics = read_metrics
        self._progress = progress
        self._metrics = metrics
        self._plot = plot
        self._every = every
        self._ledger = ledger

    def add(self, report: StepReport) -> None:
        """Counts a step; shows progress at intervals and at the last step."""
        self._progress.add(report)
        self._ledger.made(report.step, report.wait_secs)
        if self._pace is not None:
            self._pace.spending.add(report)
            for line in self._pace.lines():
                self._progress.line(f"step {report.step}: {line}")
        if not (self._every.take(report.step) or report.step == self._progress.max_steps):
            return
        found = {} if self._read_metrics is None else self._read_metrics()
        entry = self._progress.show(report, found)
        if self._board is not None:
            self._board.add_log(entry)
            if self._pace is not None:
                self._board.add_shares(report.step, self._pace.shares())
        if self._metrics is not None:
            self._metrics.add(entry | {"effective": round(self._ledger.spent.effective, 4)})
            self._ledger.save(at_once=False)
        if self._plot is not None:
            self._plot.draw_now_and_then()


class SaveHook(_IntervalHook):
    """Writes checkpoints at intervals, and again soon after a failure.

    That of the last step is written before the step is reported: other workers leave then, and
    could not make steps again that a lost parameter server takes with it.

    Args:
      writer: writes them.
      every: the interval.
      last_step: the last step of the run, if it is known.
      may_save: says of a step whether it may be saved; if not, a later one is.
    """

    def __init__(
        self,
        writer: CheckpointWriter,
        every: Every,
        last_step: int | None = None,
        may_save: Callable[[int], bool] = lambda step: True,
    ) -> None:
        super().__init__(every, last_step)
        self._writer = writer
        self._may_save = may_save

    def due(self, step: int) -> bool:
        """Whether the hook takes part in a step."""
        return (super().due(step) or self._writer.is_overdue) and self._may_save(step)

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        step = run_context.report.step
        if step == self._last_step:
            self._writer.try_to_save(run_context.session, step, whole=True)
        else:
            self._writer.save_soon(run_context.session, step)
        self._every.done(step)


class CopiesHook(_IntervalHook):
    """Checks at intervals, with all-reduce, that all copies of the variables are equal.

    All replicas check after the same steps.

    Args:
      difference: `DeployedModel.copies_difference`, a float64 scalar.
      every: the interval.

    Raises:
      ValueError: in `after_run`, if the difference is not 0.
    """

    def __init__(self, difference: Any, every: Every) -> None:
        super().__init__(every)
        self._difference = difference

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        step = run_context.report.step
        self._every.done(step)
        difference = float(run_context.session.run(self._difference))
        if difference != 0:
            raise ValueError(
                f"all copies of the variables must be equal, got a difference of {difference:g} "
                f"at step {step}"
            )


class EvaluationHook(_IntervalHook):
    """Saves a checkpoint and evaluates it, at intervals and at the last step.

    Args:
      evaluate: function of the checkpoint's path that returns metrics by name.
      metric: name of the metric for the best checkpoint and the end of the run.
      stop_at: value of the metric at which the run ends, or None.
      patience: counts evaluations without improvement, which end the run.
      plateau: the learning rate that follows the evaluations, or None.
      writer: writes the checkpoint.
      best: keeps the best checkpoint.
      metrics: gets the metrics.
      board: gets the metrics, too.
      progress: shows the metrics.
      every: the interval.
      last_step: the last step of the run, if it is known.

    Raises:
      ValueError: in `after_run`, if the evaluation does not return `metric`.
    """

    def __init__(
        self,
        evaluate: Callable[[str], Mapping[str, float]],
        *,
        metric: str,
        stop_at: float | None,
        patience: Patience,
        plateau: Plateau | None = None,
        writer: CheckpointWriter,
        best: BestCheckpoint,
        metrics: MetricsLog,
        board: Board,
        progress: Progress,
        every: Every,
        last_step: int | None,
    ) -> None:
        super().__init__(every, last_step)
        self._evaluate = evaluate
        self._metric = metric
        self._stop_at = stop_at
        self._patience = patience
        self._plateau = plateau
        self._writer = writer
        self._best = best
        self._metrics = metrics
        self._board = board
        self._progress = progress

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        step = run_context.report.step
        self._every.done(step)
        begin = time.perf_counter()
        if self.is_over_at(run_context.session, step):
            run_context.request_stop()
        if math.isnan(run_context.report.made_at):  # no steps are made meanwhile
            self._progress.leave_out(time.perf_counter() - begin)

    def is_over_at(self, session: Any, step: int) -> bool:
        """Evaluates the variables of a session; returns whether the run is over.

        Raises:
          ValueError: if the evaluation does not return the metric.
        """
        checkpoint = self._writer.try_to_save(session, step, whole=True)
        if checkpoint is None:
            self._progress.line(f"no evaluation at step {step}: its checkpoint is not written")
            return False
        found = dict(self._evaluate(checkpoint))
        if self._metric not in found:
            raise ValueError(
                f"metric must be one of {', '.join(sorted(found))}, got {self._metric!r}"
            )
        self._metrics.add({"step": step, **found})
        self._board.add_evaluation(step, found)
        numbers = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
        self._progress.line(f"evaluation at step {step}:  {numbers}")
        value = float(found[self._metric])
        with self._writer.storage.trying("the best checkpoint"):
            self._best.offer(session, step, value)
        self._patience.add(step, value)
        self._lower_the_rate(session, step)
        if self._patience.reaches(value, self._stop_at):
            self._progress.line(f"{self._metric} {self._stop_at} is reached: the run ends")
        elif self._patience.is_over:
            self._progress.line(f"{self._patience}: the run ends")
        else:
            return False
        return True

    def _lower_the_rate(self, session: Any, step: int) -> None:
        """Lets a learning rate that follows the evaluations fall, if it is time to."""
        if self._plateau is None:
            return
        before = self._plateau.falls
        self._plateau.follow(self._patience.improvements(self._plateau.min_delta))
        if self._plateau.falls != before:
            self._progress.line(f"step {step}: {self._metric} is on a plateau: the rate falls")
            self._plateau.put_into(session)
