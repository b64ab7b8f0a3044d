"""The `vgg` family: scaled by the smaller side, cropped, mirrored, mean colour subtracted.

K. Simonyan, A. Zisserman: "Very deep convolutional networks for large-scale image
recognition", 2014, section 3.1.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.order.randomness import uniform
from model_deploy.inputs.preprocessing import families, images

_NUM_DRAWS = 4
_MEAN_COLOUR = (123.68, 116.78, 103.94)  # of ImageNet: red, green, blue


def evaluate(
    image: Any,
    height: int,
    width: int,
    *,
    resize_side_min: int = 256,
    use_grayscale: bool = False,
) -> Any:
    """Crops the centre of the scaled image: uint8 [h, w, 3] to float32 [height, width, 3].

    Args:
      image: scaled so that its smaller side becomes `resize_side_min`.
      height: height of the crop.
      width: width of the crop.
      resize_side_min: length of the smaller side.
      use_grayscale: must be False.

    Raises:
      ValueError: for grey images, and a crop larger than the scaled image.
    """
    _check(image, height, width, resize_side_min, use_grayscale)
    scaled = _scale_smaller_side(image, resize_side_min)
    free = tf.shape(scaled)[:2] - [height, width]
    return _cut(scaled, free // 2, height, width) - tf.constant(_MEAN_COLOUR)


def train(
    image: Any, height: int, width: int, seed: Any, *, draws: Any = None, **options: Any
) -> Any:
    """Scales at random, crops at random, and mirrors half of the time.

    Args:
      image: uint8 [h, w, 3].
      height: height of the crop.
      width: width of the crop.
      seed: int64 [2].
      draws: see `augment`; by default those of the seed.
      **options: keyword arguments of `augment`.

    Returns:
      float32 [height, width, 3].

    Raises:
      ValueError: as `augment`.
    """
    draws = uniform(seed, _NUM_DRAWS) if draws is None else draws
    return augment(image, height, width, draws, **options)


FAMILY = families.Preprocessing(
    "vgg", train, evaluate, takes_extra_augment=True, num_draws=_NUM_DRAWS
)


def augment(
    image: Any,
    height: int,
    width: int,
    draws: Any,
    *,
    resize_side_min: int = 256,
    resize_side_max: int = 512,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """Does as `train`, with random numbers in place of a seed.

    Args:
      image: uint8 or float32 [h, w, 3], 0 to 255.
      height: height of the crop.
      width: width of the crop.
      draws: random numbers, float32 [4], from 0 to 1: smaller side, position down and across,
        mirroring.
      resize_side_min: minimum length of the smaller side.
      resize_side_max: maximum length of the smaller side.
      use_grayscale: must be False.
      extra_augment: applied to the crop before the mean is subtracted; see `Preprocessing`.

    Returns:
      float32 [height, width, 3].

    Raises:
      ValueError: for grey images, an empty range of sides, and a crop larger than the smallest
        scaled image.
    """
    _check(image, height, width, resize_side_min, use_grayscale)
    if resize_side_max < resize_side_min:
        raise ValueError(
            f"resize_side_max must be at least resize_side_min={resize_side_min}, "
            f"got {resize_side_max}"
        )
    sides = resize_side_max - resize_side_min + 1
    side = resize_side_min + tf.cast(tf.floor(draws[0] * sides), tf.int32)
    scaled = _scale_smaller_side(image, side)
    free = tf.shape(scaled)[:2] - [height, width]
    start = tf.cast(tf.floor(draws[1:3] * tf.cast(free + 1, tf.float32)), tf.int32)
    part = images.mirror(_cut(scaled, start, height, width), draws[3])
    if extra_augment is not None:
        part = tf.cast(extra_augment(part), tf.float32)
    return part - tf.constant(_MEAN_COLOUR)


def _check(image: Any, height: int, width: int, resize_side_min: int, use_grayscale: bool) -> None:
    if use_grayscale or image.shape.as_list()[-1] not in (3, None):
        raise ValueError(
            "preprocessing 'vgg' subtracts a mean colour and needs 3 channels, "
            f"got {1 if use_grayscale else image.shape.as_list()[-1]}"
        )
    if min(height, width) > resize_side_min:
        raise ValueError(
            f"image_size must be at most resize_side_min={resize_side_min}, got {height} x {width}"
        )


def _scale_smaller_side(image: Any, side: Any) -> Any:
    """Scales [h, w, 3] proportionally so that the smaller side becomes `side`."""
    sizes = tf.cast(tf.shape(image)[:2], tf.float32)
    new_sizes = tf.round(sizes * (tf.cast(side, tf.float32) / tf.reduce_min(sizes)))
    return tf.compat.v1.image.resize_bilinear(
        image[tf.newaxis], tf.cast(new_sizes, tf.int32), align_corners=False
    )[0]


def _cut(image: Any, start: Any, height: int, width: int) -> Any:
    part = tf.slice(image, tf.concat([start, [0]], axis=0), [height, width, 3])
    return tf.ensure_shape(part, [height, width, 3])
