"""Random numbers for augmentation that depend only on a pair of integers.

With a stateful generator the augmentation of an image would depend on earlier images, and
TensorFlow's stateless ops draw a whole tensor from one seed.  Here each image has its own seed
`(seed, position)`, so its augmentation is the same in any batch, clone, replica or run.

The numbers are SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
generators", OOPSLA 2014): a hash of a counter with steps of the golden ratio.
"""

from typing import Any

import tensorflow as tf

_GOLDEN = 0x9E3779B97F4A7C15
_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFTS = (30, 27, 31)


def uniform_per_image(seeds: Any, count: int) -> Any:
    """Returns `count` independent uniform numbers in [0, 1) for each seed.

    Args:
      seeds: int64 [n, 2].
      count: number of draws per seed.

    Returns:
      float32 [n, count].
    """
    words = tf.bitcast(seeds, tf.uint64)
    start = _mix(_mix(words[:, 0] + _u64(_GOLDEN)) + words[:, 1])
    counters = tf.cast(tf.range(1, count + 1), tf.uint64) * _u64(_GOLDEN)
    bits = _mix(start[:, tf.newaxis] + counters)
    # A float32 below 1 holds 24 bits exactly.
    top = tf.bitwise.right_shift(bits, _u64(40))
    return tf.cast(top, tf.float32) * 2.0**-24


def uniform(seed: Any, count: int) -> Any:
    """Returns the numbers of `uniform_per_image` for one seed, int64 [2]: float32 [count].

    It takes as long as the numbers of hundreds of seeds: fifty small ops.
    """
    return uniform_per_image(seed[tf.newaxis], count)[0]


def salted(seeds: Any, salt: int) -> Any:
    """Derives seeds for another purpose, with independent random numbers.

    Args:
      seeds: int64 [n, 2].
      salt: a number that is different for each purpose.

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
