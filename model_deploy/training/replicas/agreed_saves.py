"""`AgreedSaves`: checkpoints where replicas have values of their own, which they send to the chief.

The chief alone knows when a checkpoint is due, by the clock or by a signal; but the values that it
needs are those of all replicas after one step.  So all ask each other after the same steps.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce import OwnValues, has_own_values
from model_deploy.deployment import DeployedModel
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.steps.report import StepContext

# Steps between two questions, where a way to train has no such number.
_EVERY = 10


class AgreedSaves(tf.train.SessionRunHook):
    """Lets the chief save after the steps at which it has got the values of all replicas.

    Adds ops and a session hook to the default graph.

    Args:
      values: brings them.
      every: steps between two questions.
      last_step: a step at which the values are brought in any case, the last of the run; or None.

    Attributes:
      every: as given.
      wants: of a step, whether this process needs the values, beside `may_save`.
      in_step: called with True before this process waits for others, and with False after it.
    """

    def __init__(self, values: OwnValues, every: int, last_step: int | None) -> None:
        self._values = values
        self._last_step = last_step
        self._wanted_at = self._known_at = -1
        self.every = every
        self.wants: Callable[[int], bool] = lambda step: False
        self.in_step: Callable[[bool], None] = lambda running: None

    def due(self, step: int) -> bool:
        """Whether replicas ask each other after a step."""
        return step == self._last_step or step % self.every == 0

    def may_save(self, step: int) -> bool:
        """Whether a step that is about to be made may be saved, as is wanted."""
        if self.due(step):
            self._wanted_at = step
        return self.due(step)

    def is_known(self, step: int) -> bool:
        """Whether the chief has got the values of all replicas after a step."""
        return step == self._known_at

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        del run_values
        step = run_context.report.step
        wants = step in (self._wanted_at, self._last_step) or self.wants(step)
        self.in_step(True)
        if self._values.agree(run_context.session, wants):
            self._values.gather(run_context.session)
            self._known_at = step
        self.in_step(False)


def agreed_saves_of(
    model: DeployedModel, options: LoopOptions, max_steps: int | None
) -> AgreedSaves | None:
    """Returns how replicas with values of their own are saved; None where there are none.

    An elastic run keeps the chief's values alone.

    Args:
      model: what `deploy` returned, with an optimizer.
      options: the settings of the loop.
      max_steps: number of the last step, or None.

    Raises:
      ValueError: for options that need all copies to be equal.
    """
    config = model.config
    if config is None or not has_own_values():
        return None
    every, rule = config.local_steps or _EVERY, "where replicas have values of their own"
    if options.verify_every_n_steps is not None:
        raise ValueError(
            f"verify_every_n_steps must be None {rule}, got {options.verify_every_n_steps}"
        )
    is_elastic = config.first_batch is not None
    if config.num_replicas == 1 or is_elastic:
        return None
    if options.eval_every_n_steps is not None and options.eval_every_n_steps % every:
        raise ValueError(
            f"eval_every_n_steps must be a multiple of {every} {rule}, "
            f"got {options.eval_every_n_steps}"
        )
    return AgreedSaves(OwnValues(config), every, max_steps)
