"""The first values of a row, which follow from its id and a seed alone."""

import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.checks import check_at_least, check_whole

# Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014: the increment of
# splitmix64, and the two factors of its finalizer (David Stafford's "Mix13").
_INCREMENT = 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
# With a half behind it such a number is a float32: with one bit more the largest would be 1.
_BITS = 23


def mixed(numbers: Any, seed: int = 0) -> Any:
    """Returns well mixed 64-bit numbers: one step of splitmix64 from each number.

    Args:
      numbers: int64 or uint64, of any shape.
      seed: any integer; each seed gives other numbers.

    Returns:
      uint64, of the same shape.
    """
    start = tf.constant((seed * _FACTORS[0] + _INCREMENT) % 2**64, tf.uint64)
    z = tf.bitcast(numbers, tf.uint64) + start
    for shift, factor in zip((30, 27), _FACTORS, strict=True):
        shifted = tf.bitwise.right_shift(z, tf.constant(shift, tf.uint64))
        z = tf.bitwise.bitwise_xor(z, shifted) * tf.constant(factor, tf.uint64)
    return tf.bitwise.bitwise_xor(z, tf.bitwise.right_shift(z, tf.constant(31, tf.uint64)))


def chances(numbers: Any, seed: int = 0) -> Any:
    """Returns for each number a chance in (0, 1), even over the numbers.

    Args:
      numbers: int64 or uint64, of any shape.
      seed: any integer.

    Returns:
      float32, of the same shape: odd multiples of 2^-24.
    """
    high = tf.bitwise.right_shift(mixed(numbers, seed), tf.constant(64 - _BITS, tf.uint64))
    # In int64, for which each device has the cast.
    return (tf.cast(tf.bitcast(high, tf.int64), tf.float32) + 0.5) * 2.0**-_BITS


def _chances_of_rows(ids: Any, width: int, seed: int) -> Any:
    """Returns chances [rows, width] for ids [rows]."""
    # NumPy makes floats of a list of Python's integers if some are above 2^63.
    columns = np.array([(i * _INCREMENT) % 2**64 for i in range(width)], np.uint64)
    return chances(mixed(ids, seed)[:, tf.newaxis] + columns, seed)


@dataclasses.dataclass(frozen=True)
class Normal:
    """Normally distributed values around 0.

    Args:
      stddev: standard deviation; None for 1 / sqrt(width), as TensorFlow's embedding columns have.
      seed: any integer.

    Raises:
      ValueError: if `stddev` is not at least 0, or `seed` is not whole.
    """

    stddev: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stddev is not None:
            check_at_least("stddev", self.stddev, 0)
        check_whole("seed", self.seed, 0)

    def __call__(self, ids: Any, width: int) -> Any:
        """Returns the rows, float32 [rows, width], of ids, int64 [rows]."""
        stddev = 1 / math.sqrt(width) if self.stddev is None else self.stddev
        return stddev * tf.math.ndtri(_chances_of_rows(ids, width, self.seed))


@dataclasses.dataclass(frozen=True)
class Uniform:
    """Values that are even in (-limit, limit).

    Args:
      limit: more than 0.
      seed: any integer.

    Raises:
      ValueError: if `limit` is not more than 0, or `seed` is not whole.
    """

    limit: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ValueError(f"limit must be more than 0, got {self.limit}")
        check_whole("seed", self.seed, 0)

    def __call__(self, ids: Any, width: int) -> Any:
        """Returns the rows, float32 [rows, width], of ids, int64 [rows]."""
        return self.limit * (2 * _chances_of_rows(ids, width, self.seed) - 1)


@dataclasses.dataclass(frozen=True)
class Constant:
    """The same value in all places.

    Args:
      value: the value.
    """

    value: float = 0.0

    def __call__(self, ids: Any, width: int) -> Any:
        """Returns the rows, float32 [rows, width], of ids, int64 [rows]."""
        return tf.fill([tf.size(ids), width], float(self.value))
