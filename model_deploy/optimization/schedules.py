"""Builds the learning-rate schedule that options name, with warm-up and batch-size scaling."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import tensorflow.compat.v1 as tf

from model_deploy.commands import Options, option
from model_deploy.optimization import curves


@dataclasses.dataclass(frozen=True)
class LearningRateOptions(Options):
    """How the learning rate changes over the epochs.

    Raises:
      ValueError: as `Options`; for different numbers of boundaries and factors, or a warm-up that
        would start above the rate.
    """

    topic: ClassVar[str] = "learning rate"

    learning_rate: float = option(0.01, "learning rate at the start", above=0, common=True)
    learning_rate_decay_type: str = option(
        "exponential",
        "how the learning rate falls",
        choices=("fixed", "exponential", "polynomial", "cosine", "one_cycle", "piecewise"),
    )
    end_learning_rate: float = option(
        0.0001, "learning rate at the end of cosine, one_cycle and polynomial decay", minimum=0
    )
    learning_rate_decay_factor: float = option(
        0.94, "factor of each fall of exponential decay", above=0, maximum=1
    )
    num_epochs_per_decay: float = option(2.0, "epochs from one fall to the next", above=0)
    schedule_epochs: float | None = option(
        None, "epochs of cosine and one_cycle; default: those of the run", above=0
    )
    one_cycle_peak: float = option(
        0.45,
        "share of one_cycle at which the rate is --learning_rate; at twice that it is back",
        above=0,
        below=0.5,
    )
    one_cycle_divisor: float = option(
        10.0, "how many times lower one_cycle starts than --learning_rate", minimum=1
    )
    learning_rate_boundaries: str = option(
        "", "epochs at which piecewise goes to its next factor, such as 30,60,80"
    )
    learning_rate_factors: str = option(
        "", "factors of --learning_rate from each of these epochs on, such as 0.1,0.01,0.001"
    )
    warmup_epochs: float = option(
        0.0, "epochs in which the learning rate rises to its start", minimum=0
    )
    warmup_learning_rate: float = option(
        0.0, "learning rate from which the warm-up rises", minimum=0
    )
    learning_rate_scaling: str = option(
        "none",
        "how --learning_rate, which is for --learning_rate_batch_size, follows the batch size of "
        "an update: times the ratio of the two, or its root",
        choices=("none", "linear", "sqrt"),
    )
    learning_rate_batch_size: int = option(
        256, "images of an update for which --learning_rate is right", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        boundaries = _numbers("learning_rate_boundaries", self.learning_rate_boundaries)
        factors = _numbers("learning_rate_factors", self.learning_rate_factors)
        if any(b <= a for a, b in zip([0.0, *boundaries], boundaries, strict=False)):
            raise ValueError(
                "learning_rate_boundaries must be more than 0 and rise, "
                f"got {self.learning_rate_boundaries!r}"
            )
        if any(not 0 < factor <= 1 for factor in factors):
            raise ValueError(
                "learning_rate_factors must be more than 0 and at most 1, "
                f"got {self.learning_rate_factors!r}"
            )
        if len(boundaries) != len(factors):
            raise ValueError(
                "learning_rate_factors must be as many as learning_rate_boundaries, "
                f"got {self.learning_rate_factors!r} for {self.learning_rate_boundaries!r}"
            )
        if bool(boundaries) != (self.learning_rate_decay_type == "piecewise"):
            raise ValueError(
                "learning_rate_boundaries must go with learning_rate_decay_type=piecewise, "
                f"got {self.learning_rate_boundaries!r} with {self.learning_rate_decay_type}"
            )


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
    decayed = _decay(options, highest, steps_per_epoch, max_steps)
    # Beside the global step on its parameter server: else both would be sent in each step.
    with tf.device(global_step.device):
        rate = decayed(global_step)
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
        epochs = _numbers("learning_rate_boundaries", options.learning_rate_boundaries)
        factors = _numbers("learning_rate_factors", options.learning_rate_factors)
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
    if kind in ("cosine", "one_cycle") and options.end_learning_rate > lowest:
        raise ValueError(
            f"end_learning_rate must be at most that at the start of {kind}, {lowest:g}, "
            f"got {options.end_learning_rate}"
        )
    if options.warmup_epochs and options.warmup_learning_rate > highest:
        raise ValueError(
            f"warmup_learning_rate must be at most the learning rate, {highest:g}, "
            f"got {options.warmup_learning_rate}"
        )


def _numbers(field: str, text: str) -> list[float]:
    """Parses a list of numbers such as `30,60`."""
    try:
        numbers = [float(each) for each in text.split(",")] if text else []
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise ValueError(f"{field} must be numbers with commas between them, got {text!r}")
    return numbers
