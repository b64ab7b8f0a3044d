"""Axes of images and videos: channels last, as models are written, and channels first."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

_T = TypeVar("_T")

# Ranks of images, [batch, height, width, channels], and of videos.
RANKS = (4, 5)
# `data_format` with channels last -> the same with channels first.
FIRST = {b"NHWC": b"NCHW", b"NDHWC": b"NCDHW"}


def to_first(rank: int) -> list[int]:
    """Returns the `tf.transpose` permutation from channels last to channels first."""
    return [0, rank - 1, *range(1, rank - 1)]


def to_last(rank: int) -> list[int]:
    """Returns the `tf.transpose` permutation from channels first to channels last."""
    return [0, *range(2, rank), 1]


def permuted(per_axis: Sequence[_T]) -> list[_T]:
    """Reorders a list with one item per axis from channels last to channels first."""
    return [per_axis[axis] for axis in to_first(len(per_axis))]


def moved(axis: int, rank: int) -> int:
    """Returns the place, with channels first, of an axis (or negative axis) with channels last."""
    return to_first(rank).index(axis % rank)


def keep_order(axes: Iterable[int], rank: int) -> bool:
    """Whether removing `axes` leaves the other axes in the same order in both layouts."""
    gone = {axis % rank for axis in axes}
    kept = [moved(axis, rank) for axis in range(rank) if axis not in gone]
    return kept == sorted(kept)


def broadcast_first(tensor: Any, rank: int) -> Any:
    """Shapes a scalar or a vector with one number per channel for arithmetic with channels first.

    Args:
      tensor: of shape [] or [channels].
      rank: rank of the images.
    """
    return tensor if tensor.shape.rank == 0 else tf.reshape(tensor, [-1, *[1] * (rank - 2)])
