"""Learning-rate schedules: fixed, exponential or polynomial decay, with warm-up."""

import dataclasses
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf

from model_deploy.commands import Options, option


@dataclasses.dataclass(frozen=True)
class LearningRateOptions(Options):
    """How the learning rate changes over the epochs."""

    topic: ClassVar[str] = "learning rate"

    learning_rate: float = option(0.01, "learning rate at the start", above=0)
    learning_rate_decay_type: str = option(
        "exponential",
        "how the learning rate falls",
        choices=("fixed", "exponential", "polynomial"),
    )
    end_learning_rate: float = option(
        0.0001, "learning rate at the end of polynomial decay", minimum=0
    )
    learning_rate_decay_factor: float = option(
        0.94, "factor of each fall of exponential decay", above=0, maximum=1
    )
    num_epochs_per_decay: float = option(2.0, "epochs from one fall to the next", above=0)
    warmup_epochs: float = option(
        0.0, "epochs in which the learning rate rises to its start", minimum=0
    )


def build_learning_rate(
    options: LearningRateOptions, global_step: Any, steps_per_epoch: float
) -> Any:
    """The learning rate at a step.

    An epoch has passed when all clones and synchronous replicas together have seen
    the training set once, so four clones follow the same schedule per epoch as one.

    * `fixed`: `learning_rate`.
    * `exponential`: `learning_rate * factor ** floor(epoch / num_epochs_per_decay)`.
    * `polynomial`: a straight line from `learning_rate` down to `end_learning_rate`,
      reached after `num_epochs_per_decay` epochs.
    * warm-up: no more than `learning_rate * (step + 1) / warmup_steps`
      (Goyal et al., https://arxiv.org/abs/1706.02677, section 2.2).

    Args:
      options: the schedule.
      global_step: the number of steps done, an integer scalar tensor or variable.
      steps_per_epoch: examples / (batch size * clones * synchronous replicas).

    Returns:
      A float32 scalar named `learning_rate`, on the device of `global_step`.

    Raises:
      ValueError: if `steps_per_epoch` is not more than 0.
    """
    if not steps_per_epoch > 0:
        raise ValueError(f"steps_per_epoch must be more than 0, got {steps_per_epoch}")
    # Whole steps, so that a fall comes between two steps and at the same one in each run.
    decay_steps = max(1, round(steps_per_epoch * options.num_epochs_per_decay))
    # On a parameter server beside the variables, where else both would move in each step.
    with tf.device(global_step.device):
        rate = _decayed(options, global_step, decay_steps)
        if options.warmup_epochs > 0:
            # From the first step on more than 0, by which FTRL divides.
            steps = tf.cast(global_step + 1, tf.float32)
            done = steps / (steps_per_epoch * options.warmup_epochs)
            rate = tf.minimum(rate, options.learning_rate * done)
        return tf.identity(rate, name="learning_rate")


def _decayed(options: LearningRateOptions, global_step: Any, decay_steps: int) -> Any:
    if options.learning_rate_decay_type == "fixed":
        return tf.constant(options.learning_rate)
    if options.learning_rate_decay_type == "exponential":
        return tf.train.exponential_decay(
            options.learning_rate,
            global_step,
            decay_steps,
            options.learning_rate_decay_factor,
            staircase=True,
        )
    return tf.train.polynomial_decay(
        options.learning_rate, global_step, decay_steps, options.end_learning_rate
    )
