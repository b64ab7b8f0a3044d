"""Learning-rate schedules that TensorFlow lacks: one cycle, and piecewise for float steps."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def one_cycle(
    step: Any, steps: int, *, start: float, highest: float, last: float, peak: float
) -> Any:
    """Rises linearly to the peak, falls back to the start, and then to `last`.

    Args:
      step: an integer scalar.
      steps: length of the cycle.
      start: value at step 0, and again at `2 * peak * steps`.
      highest: value at `peak * steps`.
      last: value at `steps` and after it.
      peak: fraction of the steps, less than 1/2.

    Returns:
      A float32 scalar.
    """
    done = tf.minimum(tf.cast(step, tf.float32) / steps, 1.0)
    up = start + (highest - start) * done / peak
    down = highest + (start - highest) * (done - peak) / peak
    out = start + (last - start) * (done - 2 * peak) / (1 - 2 * peak)
    return tf.where(done < peak, up, tf.where(done < 2 * peak, down, out))


def piecewise(step: Any, boundaries: Sequence[int], values: Sequence[float]) -> Any:
    """Returns the first value, and from each boundary on the next value.

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
