"""Preprocessing steps that several families share."""

from typing import Any

import tensorflow as tf

_FEW_PIXELS = 96 * 96
_GREY_WEIGHTS = (0.2989, 0.5870, 0.1140)


def to_grey(images: Any) -> Any:
    """Converts colours to one grey channel (ITU-R BT.601), float32 [..., 3 or 1] to [..., 1]."""
    if images.shape.as_list()[-1] == 1:
        return images
    return tf.reduce_sum(images * tf.constant(_GREY_WEIGHTS), axis=-1, keepdims=True)


def mirror(image: Any, draw: Any) -> Any:
    """Mirrors the image [h, w, c] unless `draw`, float32 [] from 0 to 1, is less than a half."""
    pixels = image.shape[:2].num_elements()
    if pixels is not None and pixels <= _FEW_PIXELS:
        # To mirror along no axis copies the image, which takes less time than `tf.cond`.
        return tf.reverse(image, tf.range(1, tf.where(draw < 0.5, 1, 2)))
    return tf.cond(draw < 0.5, lambda: image, lambda: tf.reverse(image, [1]))


def checked(value: Any, holds: Any, rule: str) -> Any:
    """Returns a value; InvalidArgumentError with the rule ends the session's run if it is broken.

    It is one op, where `tf.debugging` has a condition: an image more or less in twenty.

    Args:
      value: a tensor of any shape.
      holds: bool of any shape, true where the rule is kept.
      rule: what is to hold, and what was received.
    """
    with tf.control_dependencies([tf.raw_ops.Assert(condition=tf.reduce_all(holds), data=[rule])]):
        return tf.identity(value)


def central_part(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """Crops or pads around the centre: [n, h, w, c] to float32 [n, height, width, c].

    Values are not scaled.  `use_grayscale` converts colours to one grey channel.
    """
    batch = tf.cast(batch, tf.float32)
    return crop_centre(to_grey(batch) if use_grayscale else batch, height, width)


def crop_centre(images: Any, height: int, width: int) -> Any:
    """Crops or zero-pads around the centre: [..., h, w, c] to [..., height, width, c], any type."""
    *others, old_height, old_width, channels = images.shape.as_list()
    if (old_height, old_width) == (height, width):
        return images
    images = tf.image.resize_with_crop_or_pad(images, height, width)
    images.set_shape([*others, height, width, channels])
    return images
