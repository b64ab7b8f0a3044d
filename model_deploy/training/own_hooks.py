"""`OwnHooks`: what the loop itself does between steps, as the options of a run ask for it."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from model_deploy.checkpoints import BestCheckpoint
from model_deploy.profile import ProfileHook
from model_deploy.training.evaluators import EvaluatorHook
from model_deploy.training.hooks import CopiesHook, EvaluationHook, Log, SaveHook, SummaryHook
from model_deploy.training.patience import Patience, patience_of
from model_deploy.training.run_parts import RunParts
from model_deploy.training.shown.board import Board
from model_deploy.training.shown.metrics import MetricsLog
from model_deploy.training.shown.plots import TrainingPlot
from model_deploy.training.shown.progress import Progress
from model_deploy.training.timing import Every, TimedHook


class OwnHooks:
    """The log, the evaluations and the hooks of a run in one session.

    Args:
      run: what the run is made of.
      first_step: the global step at the start.
      progress: shows lines to the user.
      stack: closes files and threads.

    Attributes:
      patience: the count of evaluations without improvement, on the chief that evaluates, or None.
      evaluation: the hook that evaluates, on the chief that does, or None.
      evaluator: the hook that looks at the results of the cluster's evaluator, or None.
    """

    def __init__(
        self, run: RunParts, first_step: int, progress: Progress, stack: contextlib.ExitStack
    ) -> None:
        self._run, self._first_step = run, first_step
        self._progress, self._stack = progress, stack
        self._metrics, self._plot, self._board = self._shown()
        self.patience = self._patience()
        self.evaluation = self._evaluation()
        self.evaluator = self._evaluator()

    def log(self, session: Any, in_step: Callable[[bool], None]) -> Log:
        """Returns what shows steps to the user.

        Args:
          session: the session.
          in_step: called with True before this process waits for others, and with False after it.
        """
        run, read = self._run, None
        if run.streamed is not None:
            read = functools.partial(run.streamed.read, session, in_step)
        return Log(
            self._progress,
            self._metrics,
            self._plot,
            self._every("log_every_n_steps"),
            self._board,
            read_metrics=read,
            pace=run.pace,
            ledger=run.ledger,
        )

    def is_over(self, session: Any) -> bool:
        """Whether the run is over before its first step here; makes an evaluation that is owed."""
        is_over = False
        if self.patience is not None and self.patience.is_over:
            self._progress.line(f"{self.patience}: no more steps are made")
            is_over = True
        if self.patience and self.evaluation and self._is_owed(self.patience):
            is_over = self.evaluation.is_over_at(session, self._first_step)
        if self.evaluator is not None:
            is_over = self.evaluator.is_over()
        return is_over

    def hooks(self) -> Iterator[Any]:
        """Yields the hooks, as the options ask for them."""
        run, options = self._run, self._run.options
        if run.copies_difference is not None:
            yield CopiesHook(run.copies_difference, self._every("copies_check_every_n_steps"))
        metrics, board = self._metrics, self._board
        if run.writer is None or metrics is None or board is None:
            return
        if options.profile_steps is not None:
            profile = ProfileHook(
                run.train_dir,
                options.profile_steps,
                self._first_step,
                lambda: metrics.storage.trying("the profile"),
            )
            self._stack.callback(profile.close)
            yield profile
        if run.summary_op is not None:
            every = self._every("save_summaries_steps", "save_summaries_secs")
            yield SummaryHook(board, run.summary_op, every, run.max_steps)
        if self.evaluation is not None:
            yield self._timed(self.evaluation, "evaluation")
        if self.evaluator is not None:
            yield self.evaluator
        every = self._every("save_interval_steps", "save_interval_secs")
        yield self._timed(SaveHook(run.writer, every, run.max_steps, self._is_trusted), "saving")

    def _every(self, steps: str, secs: str | None = None) -> Every:
        """Returns an interval from the names of its options."""
        options = self._run.options
        return Every(
            steps=getattr(options, steps),
            secs=None if secs is None else getattr(options, secs),
            first_step=self._first_step,
        )

    def _shown(self) -> tuple[MetricsLog | None, TrainingPlot | None, Board | None]:
        """Returns the files that show how the run goes, on the chief, closed by the stack."""
        run = self._run
        if run.writer is None:
            return None, None, None
        storage = run.writer.storage
        plot = TrainingPlot(run.train_dir, run.unit, storage)
        metrics = MetricsLog(run.train_dir, storage, run.tracking)
        board = Board(run.train_dir, run.unit, storage=storage)
        for each in (plot, metrics, board):
            self._stack.callback(each.close)
        return metrics, plot, board

    def _patience(self) -> Patience | None:
        run = self._run
        if run.writer is None or run.evaluate is None:
            return None
        return patience_of(run.train_dir, run.metric, run.options, self._first_step)

    def _is_owed(self, patience: Patience) -> bool:
        """Whether an earlier process was killed after a step, and before its evaluation."""
        run, step = self._run, self._first_step
        every = run.options.eval_every_n_steps
        is_followed = run.options.stop_patience is not None or run.plateau is not None
        if every is None or not is_followed or run.shares_steps:
            return False
        return step > 0 and step % every == 0 and patience.lacks(step)

    def _evaluation(self) -> EvaluationHook | None:
        run, metrics, board = self._run, self._metrics, self._board
        if not (run.writer and run.evaluate and metrics and board and self.patience):
            return None
        falls = self.patience.falls
        return EvaluationHook(
            run.evaluate,
            metric=run.metric,
            stop_at=run.options.stop_at_metric,
            patience=self.patience,
            plateau=run.plateau,
            writer=run.writer,
            best=BestCheckpoint(run.train_dir, run.metric, run.writer.device, falls=falls),
            metrics=metrics,
            board=board,
            progress=self._progress,
            every=self._every("eval_every_n_steps"),
            last_step=run.max_steps,
        )

    def _evaluator(self) -> EvaluatorHook | None:
        run = self._run
        if run.writer is None or run.options.stop_by is None:
            return None
        every = self._every("log_every_n_steps")
        return EvaluatorHook(run.train_dir, run.metric, run.options, self._progress, every)

    def _is_trusted(self, step: int) -> bool:
        """Whether a step may be saved: if steps are made twice, one that is."""
        saves, verification = self._run.agreed_saves, self._run.verification
        if saves is not None and not saves.may_save(step):
            return False
        return verification is None or verification.due(step)

    def _timed(self, hook: Any, kind: str) -> TimedHook:
        """Returns a hook that tells how long it takes."""
        aside = functools.partial(self._run.ledger.set_aside, kind)
        return TimedHook(hook, aside, self._run.pace.spending.add_saving)
