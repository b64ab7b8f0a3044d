"""The axes of images and videos with the channels last, as models have them, and first."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

_T = TypeVar("_T")

# Of an image, [batch, height, width, channels], and of a video.
RANKS = (4, 5)
# The names of the layouts, by what `data_format` says where the channels are last.
FIRST = {b"NHWC": b"NCHW", b"NDHWC": b"NCDHW"}


def to_first(rank: int) -> list[int]:
    """The permutation for `tf.transpose` that brings the channels to the front."""
    return [0, rank - 1, *range(1, rank - 1)]


def to_last(rank: int) -> list[int]:
    """The permutation that brings them back."""
    return [0, *range(2, rank), 1]


def permuted(per_axis: Sequence[_T]) -> list[_T]:
    """A list with something for each axis, in the order of channels first."""
    return [per_axis[axis] for axis in to_first(len(per_axis))]


def moved(axis: int, rank: int) -> int:
    """Where an axis of channels last is with channels first; a negative one counts from the end."""
    return to_first(rank).index(axis % rank)


def keep_order(axes: Iterable[int], rank: int) -> bool:
    """Whether the axes other than `axes` follow one another alike in both layouts."""
    gone = {axis % rank for axis in axes}
    kept = [moved(axis, rank) for axis in range(rank) if axis not in gone]
    return kept == sorted(kept)


def broadcast_first(tensor: Any, rank: int) -> Any:
    """A scalar, or a vector of a number per channel, for arithmetic with channels first.

    Args:
      tensor: of shape [] or [channels].
      rank: that of the images.
    """
    return tensor if tensor.shape.rank == 0 else tf.reshape(tensor, [-1, *[1] * (rank - 2)])
