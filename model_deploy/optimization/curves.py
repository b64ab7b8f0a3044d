"""Learning rates as functions of the step that TensorFlow does not have: one cycle, pieces."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def one_cycle(
    step: Any, steps: int, *, start: float, highest: float, last: float, peak: float
) -> Any:
    """Straight lines up to the peak, down to the start again, and from there on to `last`.

    Args:
      step: an integer scalar.
      steps: how long it takes.
      start: at step 0, and again at `2 * peak` of the steps.
      highest: at `peak` of the steps.
      last: at the end, and then.
      peak: a share of the steps, less than 1/2.

    Returns:
      A float32 scalar.
    """
    done = tf.minimum(tf.cast(step, tf.float32) / steps, 1.0)
    up = start + (highest - start) * done / peak
    down = highest + (start - highest) * (done - peak) / peak
    out = start + (last - start) * (done - 2 * peak) / (1 - 2 * peak)
    return tf.where(done < peak, up, tf.where(done < 2 * peak, down, out))


def piecewise(step: Any, boundaries: Sequence[int], values: Sequence[float]) -> Any:
    """The first value, and from each boundary on the next one.

    Args:
      step: an integer scalar.
      boundaries: steps, rising.
      values: one more than boundaries.

    Returns:
      A float32 scalar.
    """
    passed = tf.cast(step, tf.int64) >= tf.constant(list(boundaries), tf.int64)
    return tf.gather(
        tf.constant(list(values), tf.float32), tf.reduce_sum(tf.cast(passed, tf.int32))
    )
