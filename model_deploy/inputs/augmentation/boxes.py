"""Masks of boxes in images, with one box per image of a batch."""

from typing import Any

import tensorflow as tf


def inside(begin: Any, end: Any, shape: Any) -> Any:
    """Returns a mask of each image's box.

    Args:
      begin: top and left of the box, int32 [n, 2].
      end: bottom and right, exclusive, int32 [n, 2].
      shape: shape of the batch, (n, h, w, c).

    Returns:
      float32 [n, h, w, c]: 1 inside, 0 outside.
    """
    _, height, width, channels = tf.unstack(shape)
    rows = _between(tf.range(height), begin[:, :1], end[:, :1])
    # Over whole rows of values: broadcasting over the channels alone would be slower.
    columns = _between(tf.range(width * channels) // channels, begin[:, 1:], end[:, 1:])
    return tf.reshape(rows[:, :, tf.newaxis] * columns[:, tf.newaxis, :], shape)


def _between(places: Any, begin: Any, end: Any) -> Any:
    return tf.cast((places >= begin) & (places < end), tf.float32)
