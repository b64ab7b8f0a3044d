"""The `lenet` family: cropped around the centre, values -1 to 1, without randomness."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.preprocessing import families, images


def evaluate(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """Crops or pads around the centre: uint8 [n, h, w, c] to float32 [n, height, width, c].

    Values become (value - 128) / 128; the padding is 0 before that.
    """
    return _scaled(images.central_part(batch, height, width, use_grayscale=use_grayscale))


def train(
    batch: Any,
    height: int,
    width: int,
    seeds: Any,
    *,
    crop_image: bool = True,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """Like `evaluate`, float32 [n, height, width, c]: the family has no augmentation of its own.

    Args:
      batch: uint8 [n, h, w, c].
      height: height of the result.
      width: width of the result.
      seeds: int64 [n, 2], not used.
      crop_image: not used: images of the final size are not cropped.
      use_grayscale: whether to convert colours to one grey channel.
      extra_augment: applied to the images before they are normalized; see `Preprocessing`.
    """
    del seeds, crop_image
    part = images.central_part(batch, height, width, use_grayscale=use_grayscale)
    return _scaled(part if extra_augment is None else tf.cast(extra_augment(part), tf.float32))


FAMILY = families.Preprocessing(
    "lenet", train, evaluate, batched=True, takes_extra_augment=True, crop=images.crop_centre
)


def _scaled(batch: Any) -> Any:
    return (batch - 128.0) / 128.0
