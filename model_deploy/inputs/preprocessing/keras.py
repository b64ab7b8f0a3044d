"""The `keras` family: a random part, stretched, mirrored; 0 to 255 as in files.

The networks of `keras.applications` do the rest of their preprocessing themselves, each its own,
so that it is the same in training, evaluation and whatever is exported.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform_per_image
from model_deploy.inputs.preprocessing import families, images, inception


def evaluate(
    image: Any, height: int | None, width: int | None, *, use_grayscale: bool = False
) -> Any:
    """[h, w, c] to float32 [height, width, c], 0 to 255: the whole image, stretched.

    Args:
      image: uint8, or float32 from 0 to 1.
      height: of the result; None keeps the size, as does a width of None.
      width: of the result.
      use_grayscale: turns colours into one grey channel first.
    """
    image = tf.image.convert_image_dtype(image, tf.float32)
    if use_grayscale:
        image = images.to_grey(image)
    if height is not None and width is not None:
        image = _resize(image, height, width)
    return image * 255.0


@families.register_preprocessing(
    "keras", evaluate, crop_encoded=inception.crop_encoded, takes_extra_augment=True
)
def train(
    image: Any,
    height: int,
    width: int,
    seed: Any,
    *,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """A random part, stretched, mirrored half of the time.

    Args:
      image: uint8 [h, w, c], or float32 from 0 to 1.
      height: of the result.
      width: of the result.
      seed: int64 [2].
      crop_image: whether to cut out a random part.
      use_grayscale: turns colours into one grey channel at the end.
      extra_augment: what is done to the image when it is mirrored; see `Preprocessing`.

    Returns:
      float32 [height, width, c], 0 to 255.
    """
    if crop_image:
        image = inception.cut_random_part(image, seed)
    image = tf.image.convert_image_dtype(image, tf.float32)
    draw = uniform_per_image(seed[tf.newaxis], 1)[0, 0]
    image = images.mirror(_resize(image, height, width), draw) * 255.0
    if extra_augment is not None:
        image = tf.cast(extra_augment(image), tf.float32)
    return images.to_grey(image) if use_grayscale else image


def _resize(image: Any, height: int, width: int) -> Any:
    channels = image.shape.as_list()[-1]
    image = tf.image.resize(image, [height, width])
    return tf.ensure_shape(image, [height, width, channels])
