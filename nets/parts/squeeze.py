"""Drops the height and width of logits."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def squeeze_pixel(logits: Any, axes: Sequence[int], name: str = "SpatialSqueeze") -> Any:
    """Removes the `axes`, which must be of size 1 where their size is known.

    Args:
      logits: float32, with height and width at `axes`.
      axes: two positions in its shape.
      name: of the op.

    Raises:
      ValueError: if one of the axes is larger, so that TensorFlow would refuse.
    """
    if any(logits.shape.as_list()[axis] not in {None, 1} for axis in axes):
        raise ValueError(
            "spatial_squeeze needs logits of 1 x 1 pixel, got shape"
            f" {logits.shape}: pool over all of it, give smaller images, or spatial_squeeze=False"
        )
    return tf.squeeze(logits, axes, name=name)
