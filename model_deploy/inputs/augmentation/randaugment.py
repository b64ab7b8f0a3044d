"""RandAugment: applies randomly chosen operations to each image, one after the other."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.inputs.augmentation.magnitude import LARGEST_MAGNITUDE
from model_deploy.inputs.augmentation.operations import OPERATIONS, rounded
from model_deploy.inputs.order.randomness import salted, uniform_per_image

_SALT = 0x52414E44
_SMALLEST_SIDE = 3  # a pixel and its neighbours


def randaugment(images: Any, seeds: Any, layers: int, magnitude: float) -> Any:
    """Applies `layers` operations to each image, each chosen uniformly from all operations.

    Args:
      images: [n, h, w, c] or [h, w, c], uint8 or float32 from 0 to 255, with 1 or 3 channels.
      seeds: int64 [n, 2] or [2].
      layers: number of operations per image.
      magnitude: from 0 to 10, ten times the strength of all operations; directions are random.

    Returns:
      uint8 of the same shape.

    Raises:
      ValueError: for images with another number of channels, or of less than 3 x 3 pixels.
    """
    height, width, channels = images.shape.as_list()[-3:]
    if channels not in (1, 3):
        raise ValueError(
            f"randaugment_layers must be 0 for images without 1 or 3 channels, got {layers} with "
            f"{channels} channels"
        )
    if min(height or _SMALLEST_SIDE, width or _SMALLEST_SIDE) < _SMALLEST_SIDE:
        raise ValueError(
            f"randaugment_layers must be 0 for images below {_SMALLEST_SIDE} x {_SMALLEST_SIDE}, "
            f"got {layers} with {height} x {width}"
        )
    if images.dtype != tf.uint8:
        images = rounded(images)
    single = images.shape.rank == 3
    if single:
        images, seeds = images[tf.newaxis], seeds[tf.newaxis]
    shape = images.shape
    draws = uniform_per_image(salted(seeds, _SALT), 2 * layers)
    strength = magnitude / LARGEST_MAGNITUDE
    apply = _to_one if single else _to_each
    for layer in range(layers):
        chosen = tf.cast(draws[:, 2 * layer] * len(OPERATIONS), tf.int32)
        strengths = tf.where(draws[:, 2 * layer + 1] < 0.5, strength, -strength)
        images = tf.ensure_shape(apply(images, chosen, strengths), shape)
    return images[0] if single else images


def _to_one(images: Any, chosen: Any, strengths: Any) -> Any:
    """Applies its operation to a batch of one image; no other operation runs."""
    ways: list[Callable[[], Any]] = [
        functools.partial(operation, images, strengths) for operation in OPERATIONS.values()
    ]
    return tf.switch_case(chosen[0], ways)


def _to_each(images: Any, chosen: Any, strengths: Any) -> Any:
    """Runs each operation once, on those images of the batch that have drawn it."""
    count = tf.shape(images)[0]
    places = tf.dynamic_partition(tf.range(count), chosen, len(OPERATIONS))
    changed = [
        operation(tf.gather(images, its), tf.gather(strengths, its))
        for operation, its in zip(OPERATIONS.values(), places, strict=True)
    ]
    return tf.dynamic_stitch(places, changed)
