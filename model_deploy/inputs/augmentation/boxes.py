"""Boxes in images, one for each image of a batch."""

from typing import Any

import tensorflow as tf


def inside(begin: Any, end: Any, shape: Any) -> Any:
    """Which values of a batch of images are inside of each image's box.

    Args:
      begin: top and left, int32 [n, 2].
      end: below the bottom and right of the box, int32 [n, 2].
      shape: that of the batch, (n, h, w, c).

    Returns:
      float32 [n, h, w, c]: 1 inside, 0 outside.
    """
    _, height, width, channels = tf.unstack(shape)
    rows = _between(tf.range(height), begin[:, :1], end[:, :1])
    # Whole rows of values at once: over the channels alone, the product would take longer.
    columns = _between(tf.range(width * channels) // channels, begin[:, 1:], end[:, 1:])
    return tf.reshape(rows[:, :, tf.newaxis] * columns[:, tf.newaxis, :], shape)


def _between(places: Any, begin: Any, end: Any) -> Any:
    return tf.cast((places >= begin) & (places < end), tf.float32)
