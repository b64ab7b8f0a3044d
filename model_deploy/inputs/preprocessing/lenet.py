"""The `lenet` family: around the centre, values from -1 to 1, nothing random."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.preprocessing import families, images


def evaluate(batch: Any, height: int, width: int, *, use_grayscale: bool = False) -> Any:
    """uint8 [n, h, w, c] to float32 [n, height, width, c], (value - 128) / 128.

    Cut or padded around the centre; padded places are zeros before the scaling.
    """
    return _scaled(images.central_part(batch, height, width, use_grayscale=use_grayscale))


@families.register_preprocessing("lenet", evaluate, batched=True, takes_extra_augment=True)
def train(
    batch: Any,
    height: int,
    width: int,
    seeds: Any,
    *,
    use_grayscale: bool = False,
    extra_augment: Callable[[Any], Any] | None = None,
) -> Any:
    """The same as `evaluate`, float32 [n, height, width, c]: it has no augmentation of its own.

    Args:
      batch: uint8 [n, h, w, c].
      height: of the result.
      width: of the result.
      seeds: int64 [n, 2], not used.
      use_grayscale: turns colours into one grey channel first.
      extra_augment: what is done to the images before they are normalized; see `Preprocessing`.
    """
    del seeds
    part = images.central_part(batch, height, width, use_grayscale=use_grayscale)
    return _scaled(part if extra_augment is None else tf.cast(extra_augment(part), tf.float32))


def _scaled(batch: Any) -> Any:
    return (batch - 128.0) / 128.0
