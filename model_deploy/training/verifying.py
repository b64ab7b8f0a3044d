"""What a run does with steps that are made twice: which ones, what waits for them, going back."""

from typing import Any

from model_deploy.deployment import DeployedModel
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.timing import Every
from model_deploy.verification import CorruptionError, Verification


def verification_of(
    model: DeployedModel, report: Any, options: LoopOptions, max_steps: int | None
) -> Verification | None:
    """Returns what makes steps twice; None without `verify_every_n_steps`.

    Those at intervals, the last one, and those before which a save or an evaluation is due.

    Args:
      model: what `deploy` returned, with an optimizer.
      report: the result of `report_op`, a float64 vector.
      options: the settings.
      max_steps: number of the last step, or None.

    Raises:
      ValueError: as `Verification`.
    """
    if options.verify_every_n_steps is None:
        return None
    others = [options.eval_every_n_steps, options.save_interval_steps]
    every = [options.verify_every_n_steps, *(each for each in others if each is not None)]
    return Verification(model, report, every, max_steps)


class WhenVerified(Every):
    """An interval whose end waits for a step that is made twice.

    Args:
      every: the interval.
      verification: makes steps twice; None if none is, and nothing waits.
    """

    def __init__(self, every: Every, verification: Verification | None) -> None:
        self._every = every
        self._verification = verification

    def due(self, step: int) -> bool:
        """Whether the interval is over at `step`, which is made twice."""
        verified = self._verification is None or self._verification.due(step)
        return verified and self._every.due(step)

    def done(self, step: int) -> None:
        """Restarts the interval."""
        self._every.done(step)


def check_goes_back(
    error: CorruptionError, options: LoopOptions, verification: Verification | None
) -> None:
    """Raises the error if the run is to end, or has gone back from the same step again and again.

    Args:
      error: of a step that gave two results.
      options: the settings.
      verification: made the step.
    """
    if options.on_corruption == "end" or verification is None or not verification.may_go_back:
        raise error
