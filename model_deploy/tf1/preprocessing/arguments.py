"""What the functions of this package take, as the functions that they call want it."""

from typing import Any

import tensorflow.compat.v1 as tf


def as_image(image: Any, channels: int | None = None) -> Any:
    """One image as a tensor [h, w, c] of the same type.

    Args:
      image: a tensor, whose shape may be unknown, or an array.
      channels: how many it has, where its shape does not say so.

    Raises:
      ValueError: for a shape that is not of three dimensions.
    """
    image = tf.convert_to_tensor(image)
    shape = [None] * 3 if image.shape.ndims is None else image.shape.as_list()
    if len(shape) != 3:
        raise ValueError(f"image must be [height, width, channels], got shape {shape}")
    return tf.ensure_shape(image, [*shape[:2], channels]) if shape[2] is None else image


def as_size(size: Any) -> int:
    """A height or width as a number, also where it is an entry of a shape of TensorFlow 1."""
    return int(size)
