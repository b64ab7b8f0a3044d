"""Random numbers for augmentation that depend on nothing but a pair of integers.

A stateful generator would make the augmentation of an image depend on how many
were drawn before it, and TensorFlow's stateless ops draw for a whole tensor from one
seed.  Here each image has its own seed `(seed, position)`, so its augmentation is the
same in whichever batch, clone, replica or run it is made.

The numbers are SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
generators", OOPSLA 2014): the finalizer of a counter that moves by the golden ratio.
"""

from typing import Any

import tensorflow as tf

_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)


def uniform_per_image(seeds: Any, count: int) -> Any:
    """`count` independent numbers in [0, 1) for each seed.

    Args:
      seeds: int64 [n, 2].
      count: how many numbers each seed gives.

    Returns:
      float32 [n, count].
    """
    words = tf.bitcast(seeds, tf.uint64)
    start = _mix(_mix(words[:, 0] + _u64(_GOLDEN)) + words[:, 1])
    counters = tf.cast(tf.range(1, count + 1), tf.uint64) * _u64(_GOLDEN)
    bits = _mix(start[:, tf.newaxis] + counters)
    # 24 bits are as many as a float32 below 1 holds exactly.
    top = tf.bitwise.right_shift(bits, _u64(40))
    return tf.cast(top, tf.float32) * 2.0**-24


def salted(seeds: Any, salt: int) -> Any:
    """Seeds for another purpose: their numbers are independent of those of `seeds`.

    Args:
      seeds: int64 [n, 2].
      salt: a number of its own for each purpose.

    Returns:
      int64 [n, 2].
    """
    words = tf.bitcast(seeds, tf.uint64)
    first = _mix(tf.bitwise.bitwise_xor(words[:, 0], _u64(salt * _GOLDEN % 2**64)))
    return tf.bitcast(tf.stack([first, words[:, 1]], axis=1), tf.int64)


def _mix(words: Any) -> Any:
    for shift, multiplier in zip(_SHIFTS, _MULTIPLIERS, strict=False):
        words = tf.bitwise.bitwise_xor(words, tf.bitwise.right_shift(words, _u64(shift)))
        words *= _u64(multiplier)
    return tf.bitwise.bitwise_xor(words, tf.bitwise.right_shift(words, _u64(_SHIFTS[-1])))


def _u64(value: int) -> Any:
    return tf.constant(value, tf.uint64)
