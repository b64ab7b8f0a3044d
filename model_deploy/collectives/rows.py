"""Rows of all clones one behind the other, where each clone has another number of them."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives.narrow import gather_narrow
from model_deploy.collectives.ops import Collectives, PerClone

# No tensor has more rows than an integer of 32 bits can count.
_BITS = 31


def gather_rows(
    collectives: Collectives,
    tensors: PerClone,
    counts: PerClone,
    label: str,
    wire_dtype: tf.DType = tf.float32,
) -> PerClone:
    """The rows of all ranks in the order of ranks; none is added, however many each has.

    Args:
      collectives: the ops of this step.
      tensors: tensors [rows, ...], alike but for the number of rows, which may be 0.
      counts: the rows of each rank, integers [`size`], for each clone of this process.
      label: names the op, the same in every process.
      wire_dtype: type in which tensors of float32 are sent.

    Returns:
      For each clone a tensor [sum of counts, ...].
    """
    longest = collectives.on_devices(lambda i: rows_to_send(counts[i]))
    filled = collectives.on_devices(lambda i: fill_up(tensors[i], longest[i]))
    gathered = gather_narrow(collectives, filled, label, wire_dtype, longest)
    return collectives.on_devices(lambda i: without_filling(gathered[i], counts[i], longest[i]))


def rows_to_send(counts: Any) -> Any:
    """How many rows each process sends, an integer: the most that any has, rounded up.

    Collective ops take the same number of rows from each, and not none.  A server notes each number
    that it has seen: up to 2^k rows these are at most 16 (k - 3) numbers, and of n rows at most
    n / 16 more are sent.

    Args:
      counts: the rows of each process, integers of any shape.
    """
    most = tf.maximum(tf.reduce_max(counts), 1)
    powers = tf.constant([32 << k for k in range(_BITS - 5)], most.dtype)
    shift = tf.reduce_sum(tf.cast(most > powers, most.dtype))
    ones = tf.bitwise.left_shift(tf.ones([], most.dtype), shift) - 1
    return tf.bitwise.bitwise_and(most + ones, tf.bitwise.invert(ones))


def fill_up(tensor: Any, num_rows: Any) -> Any:
    """A tensor [rows, ...] with rows of zeros behind it, `num_rows` in all."""
    missing = num_rows - tf.shape(tensor)[0]
    return tf.pad(tensor, [[0, missing]] + [[0, 0]] * (tensor.shape.rank - 1))


def without_filling(gathered: Any, counts: Any, longest: Any) -> Any:
    """Of blocks of `longest` rows, one behind the other, the first `counts` rows of each."""
    real = tf.reshape(tf.sequence_mask(counts, longest), [-1])
    return tf.boolean_mask(gathered, real)
