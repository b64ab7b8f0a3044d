"""Builds the learning-rate schedule that options name, with warm-up and batch-size scaling."""

import math
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.optimization import curves
from model_deploy.optimization.learning_rate_options import LearningRateOptions, numbers_in
from model_deploy.optimization.plateau import Plateau, note_plateau
from model_deploy.updating import note_late


def scaled_learning_rate(options: LearningRateOptions, update_batch_size: int) -> float:
    """Returns `learning_rate`, scaled for the batch size of an update.

    * `none`: unscaled.
    * `linear`: times `update_batch_size / learning_rate_batch_size` (Goyal et al.,
      https://arxiv.org/abs/1706.02677, section 2.1), for SGD, momentum and LARS.
    * `sqrt`: times the square root of that ratio (Krizhevsky, https://arxiv.org/abs/1404.5997,
      section 3; You et al., https://arxiv.org/abs/1904.00962, for LAMB), for optimizers like Adam.

    Args:
      options: the schedule.
      update_batch_size: examples per update of the variables, over all clones and synchronous
        replicas; asynchronous clones or replicas make separate updates.
    """
    ratio = update_batch_size / options.learning_rate_batch_size
    factors = {"none": 1.0, "linear": ratio, "sqrt": math.sqrt(ratio)}
    return options.learning_rate * factors[options.learning_rate_scaling]


def learning_rate_note(options: LearningRateOptions, update_batch_size: int) -> str:
    """Describes the scaled learning rate and its schedule in a few words."""
    note = f"learning rate {scaled_learning_rate(options, update_batch_size):g}"
    if options.learning_rate_scaling != "none":
        ratio = f"{update_batch_size} / {options.learning_rate_batch_size}"
        shown = f"sqrt({ratio})" if options.learning_rate_scaling == "sqrt" else ratio
        note += f" = {options.learning_rate:g} * {shown}"
    note += f" ({options.learning_rate_decay_type}"
    if options.warmup_epochs:
        note += f", from {options.warmup_learning_rate:g} in {options.warmup_epochs:g} epochs"
    return f"{note})"


def build_learning_rate(
    options: LearningRateOptions,
    global_step: Any,
    steps_per_epoch: float,
    *,
    max_steps: int | None = None,
    update_batch_size: int | None = None,
) -> Any:
    """Builds the learning rate as a function of the global step.

    An epoch has passed when all clones and synchronous replicas together have seen the training set
    once, so four clones follow the same schedule per epoch as one.  `learning_rate` below is scaled
    by `scaled_learning_rate`; other rates are not.

    * `fixed`: `learning_rate`.
    * `exponential`: `learning_rate * factor ** floor(epoch / num_epochs_per_decay)`.
    * `polynomial`: a straight line from `learning_rate` down to `end_learning_rate`,
      reached after `num_epochs_per_decay` epochs.
    * `cosine`: `end + (learning_rate - end) * (1 + cos(pi * p)) / 2`, with
      `end = end_learning_rate` and `p = epoch / schedule_epochs`, at most 1 (Loshchilov and
      Hutter, https://arxiv.org/abs/1608.03983, without restarts).
    * `one_cycle`: straight lines from `learning_rate / one_cycle_divisor` at `p = 0` to
      `learning_rate` at `one_cycle_peak`, back at `2 * one_cycle_peak`, and then down to
      `end_learning_rate` at 1 (Smith and Topin, https://arxiv.org/abs/1708.07120, section 3).
      The momentum is constant.
    * `piecewise`: `learning_rate`, and from each boundary (in epochs) on times its factor.
    * `plateau`: `max(end_learning_rate, learning_rate * factor ** falls)`; the rate falls after
      `plateau_patience` evaluations in a row without improvement, counted from the last fall or
      improvement.  `training.train` sees to it; other loops call the methods of `noted_plateau()`.
    * warm-up, for all schedules: in the first `warmup_epochs` at most a straight line from
      `warmup_learning_rate` to `learning_rate`, which step 0 begins to climb:
      `warmup + (learning_rate - warmup) * (step + 1) / warmup_steps`
      (Goyal et al., https://arxiv.org/abs/1706.02677, section 2.2).

    Args:
      options: the schedule.
      global_step: the number of steps done, an integer scalar tensor or variable.
      steps_per_epoch: examples / (batch size * clones * synchronous replicas).
      max_steps: number of steps of the run, for schedules that span the run.
      update_batch_size: examples per update, for `learning_rate_scaling`.

    Returns:
      A float32 scalar named `learning_rate`, on the device of `global_step`.

    Raises:
      ValueError: if `steps_per_epoch` is not more than 0; if `max_steps` or `update_batch_size`
        is not given though the options need it; if the lowest rate is above the highest.
    """
    if not steps_per_epoch > 0:
        raise ValueError(f"steps_per_epoch must be more than 0, got {steps_per_epoch}")
    if options.learning_rate_scaling != "none" and update_batch_size is None:
        raise ValueError(
            "update_batch_size must be given with learning_rate_scaling="
            f"{options.learning_rate_scaling}, got None"
        )
    highest = options.learning_rate
    if update_batch_size is not None:
        highest = scaled_learning_rate(options, update_batch_size)
    _check_order(options, highest)
    if options.learning_rate_decay_type == "plateau":
        return _on_plateau(options, highest, global_step, steps_per_epoch)
    decayed = _decay(options, highest, steps_per_epoch, max_steps)
    # Beside the global step on its parameter server: else both would be sent in each step.
    with tf.device(global_step.device):
        return _warm_up(options, highest, decayed(global_step), global_step, steps_per_epoch)


def _on_plateau(
    options: LearningRateOptions, highest: float, global_step: Any, steps_per_epoch: float
) -> Any:
    """Builds a rate that follows evaluations, and notes its plateau in the default graph."""
    plateau = Plateau(global_step.device, options.plateau_patience, options.plateau_min_delta)
    note_plateau(plateau)

    def build() -> Any:
        with tf.device(global_step.device):
            rate = plateau.rate(
                highest, options.learning_rate_decay_factor, options.end_learning_rate
            )
            return _warm_up(options, highest, rate, global_step, steps_per_epoch)

    rate = build()
    note_late(rate, build)
    return rate


def _warm_up(
    options: LearningRateOptions,
    highest: float,
    rate: Any,
    global_step: Any,
    steps_per_epoch: float,
) -> Any:
    """Returns a rate, at most that of the warm-up, by the name `learning_rate`."""
    if options.warmup_epochs > 0:
        # More than 0 from the first step on, as FTRL divides by it.
        steps = tf.cast(global_step + 1, tf.float32)
        done = steps / (steps_per_epoch * options.warmup_epochs)
        rise = highest - options.warmup_learning_rate
        rate = tf.where(
            done < 1, tf.minimum(rate, options.warmup_learning_rate + rise * done), rate
        )
    return tf.identity(rate, name="learning_rate")


def _decay(
    options: LearningRateOptions, highest: float, steps_per_epoch: float, max_steps: int | None
) -> Callable[[Any], Any]:
    """Returns the schedule without warm-up, as a function of the step."""
    kind, end = options.learning_rate_decay_type, options.end_learning_rate
    if kind == "fixed":
        return lambda step: tf.constant(highest)
    if kind in ("cosine", "one_cycle"):
        steps = _schedule_steps(options, steps_per_epoch, max_steps)
        if kind == "cosine":
            return lambda step: tf.train.cosine_decay(highest, step, steps, alpha=end / highest)
        start, peak = highest / options.one_cycle_divisor, options.one_cycle_peak
        return lambda step: curves.one_cycle(
            step, steps, start=start, highest=highest, last=end, peak=peak
        )
    if kind == "piecewise":
        epochs = numbers_in("learning_rate_boundaries", options.learning_rate_boundaries)
        factors = numbers_in("learning_rate_factors", options.learning_rate_factors)
        boundaries = [_whole_steps(steps_per_epoch, each) for each in epochs]
        values = [highest, *(highest * factor for factor in factors)]
        return lambda step: curves.piecewise(step, boundaries, values)
    steps = _whole_steps(steps_per_epoch, options.num_epochs_per_decay)
    if kind == "exponential":
        factor = options.learning_rate_decay_factor
        return lambda step: tf.train.exponential_decay(highest, step, steps, factor, staircase=True)
    return lambda step: tf.train.polynomial_decay(highest, step, steps, end)


def _whole_steps(steps_per_epoch: float, epochs: float) -> int:
    """Converts epochs to whole steps, so that each run changes the rate at the same step."""
    return max(1, round(steps_per_epoch * epochs))


def _schedule_steps(
    options: LearningRateOptions, steps_per_epoch: float, max_steps: int | None
) -> int:
    if options.schedule_epochs is not None:
        return _whole_steps(steps_per_epoch, options.schedule_epochs)
    if max_steps is None:
        raise ValueError(
            f"schedule_epochs or max_steps must be given for {options.learning_rate_decay_type}, "
            "got neither"
        )
    return max_steps


def _check_order(options: LearningRateOptions, highest: float) -> None:
    """Checks that rates at the start and end of a schedule are not above the highest rate."""
    kind, lowest = options.learning_rate_decay_type, highest
    if kind == "one_cycle":
        lowest = highest / options.one_cycle_divisor
    if kind in ("cosine", "one_cycle", "plateau") and options.end_learning_rate > lowest:
        raise ValueError(
            f"end_learning_rate must be at most that at the start of {kind}, {lowest:g}, "
            f"got {options.end_learning_rate}"
        )
    if options.warmup_epochs and options.warmup_learning_rate > highest:
        raise ValueError(
            f"warmup_learning_rate must be at most the learning rate, {highest:g}, "
            f"got {options.warmup_learning_rate}"
        )
