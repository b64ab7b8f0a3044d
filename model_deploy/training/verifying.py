"""Which steps of a run are made twice."""

from typing import Any

from model_deploy.deployment import DeployedModel
from model_deploy.training.loop_options import LoopOptions
from model_deploy.verification import Verification


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
