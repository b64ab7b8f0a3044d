"""The `keras` family: random crop, stretched, mirrored; values 0 to 255.

The networks of `keras.applications` contain the rest of their preprocessing, so that it is the same
in training, evaluation and exported models.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform
from model_deploy.inputs.preprocessing import families, images, inception


def evaluate(
    image: Any, height: int | None, width: int | None, *, use_grayscale: bool = False
) -> Any:
    """Stretches the whole image: [h, w, c] to float32 [height, width, c], 0 to 255.

    Args:
      image: uint8, or float32 from 0 to 1.
      height: height of the result; None (also for the width) keeps the size.
      width: width of the result.
      use_grayscale: whether to convert colours to one grey channel.
    """
    image = tf.image.convert_image_dtype(image, tf.float32)
    if use_grayscale:
        image = images.to_grey(image)
    if height is not None and width is not None:
        image = _resize(image, height, width)
    return image * 255.0


def train(
    image: Any,
    height: int,
    width: int,
    seed: Any,
    *,
    draws: Any = None,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """Crops at random, stretches, and mirrors half of the time.

    Args:
      image: uint8 [h, w, c], or float32 from 0 to 1.
      height: height of the result.
      width: width of the result.
      seed: int64 [2].
      draws: a random number, float32 [1], from 0 to 1: mirroring; by default that of the seed.
      crop_image: whether to crop at random.
      use_grayscale: whether to convert colours to one grey channel, at the end.
      extra_augment: applied to the image after mirroring; see `Preprocessing`.

    Returns:
      float32 [height, width, c], 0 to 255.
    """
    if crop_image:
        image = inception.cut_random_part(image, seed)
    image = tf.image.convert_image_dtype(image, tf.float32)
    draws = uniform(seed, 1) if draws is None else draws
    image = images.mirror(_resize(image, height, width), draws[0]) * 255.0
    if extra_augment is not None:
        image = tf.cast(extra_augment(image), tf.float32)
    return images.to_grey(image) if use_grayscale else image


FAMILY = families.Preprocessing(
    "keras",
    train,
    evaluate,
    crop_encoded=inception.crop_encoded,
    takes_extra_augment=True,
    num_draws=1,
)


def _resize(image: Any, height: int, width: int) -> Any:
    channels = image.shape.as_list()[-1]
    image = tf.image.resize(image, [height, width])
    return tf.ensure_shape(image, [height, width, channels])
