"""Preprocessing steps that several families share."""

from typing import Any

import tensorflow as tf

_GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)


def to_grey(images: Any) -> Any:
    """Converts colours to one grey channel (ITU-R BT.601), float32 [..., 3 or 1] to [..., 1]."""
    if images.shape.as_list()[-1] == 1:
        return images
    return tf.reduce_sum(images * tf.constant(_GREY_WEIGHTS), axis=-1, keepdims=True)


def mirror(image: Any, draw: Any) -> Any:
    """Mirrors the image [h, w, c] unless `draw`, float32 [] from 0 to 1, is less than a half."""
    return tf.cond(draw < 0.5, lambda: image, lambda: tf.reverse(image, [1]))


def central_part(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """Crops or pads around the centre: [n, h, w, c] to float32 [n, height, width, c].

    Values are not scaled.  `use_grayscale` converts colours to one grey channel.
    """
    channels = batch.shape.as_list()[-1]
    batch = tf.cast(batch, tf.float32)
    if use_grayscale:
        batch = to_grey(batch)
    if batch.shape.as_list()[1:3] != [height, width]:
        batch = tf.image.resize_with_crop_or_pad(batch, height, width)
    batch.set_shape([None, height, width, 1 if use_grayscale else channels])
    return batch


def crop_centre(image: Any, height: int, width: int) -> Any:
    """Crops or zero-pads around the centre: [h, w, c] to [height, width, c] of the same type."""
    channels = image.shape.as_list()[-1]
    return tf.ensure_shape(
        tf.image.resize_with_crop_or_pad(image, height, width), [height, width, channels]
    )
