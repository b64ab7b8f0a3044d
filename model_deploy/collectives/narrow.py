"""Sums and gathers that send 16 bits between processes and add in 32 bits.

TensorFlow's all-reduce of 16-bit tensors adds in 16 bits at each station of its ring.  Here each
process receives one slice of every process's vector, adds the slices in 32 bits, and sends the sum
to all.  This moves as many numbers as a ring, and all processes get the same rounded sums.
"""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import packing
from model_deploy.collectives.ops import Collectives, PerClone


def sum_narrow(
    collectives: Collectives, vectors: PerClone, label: str, scale: float, wire_dtype: tf.DType
) -> PerClone:
    """Sums each element over the group, times `scale`, sent in `wire_dtype`; see `Collectives.sum`.

    The sum of a process's clones is rounded once before it is sent, the total once more.

    Args:
      collectives: the ops of this step.
      vectors: one per clone, of one length and float dtype; other dtypes than float32 stay exact.
      label: names the op, the same in every process.
      scale: 1 / `size` for the mean.
      wire_dtype: a type of floats.

    Returns:
      A vector of the same length and dtype for each clone.
    """
    if not packing.is_rounded(vectors[0], wire_dtype):
        return collectives.sum(vectors, label, scale)
    firsts = collectives.first_clones()
    length = vectors[0].shape.num_elements()
    row_length = -(-length // firsts.size)
    filling = firsts.size * row_length - length
    label = f"{label}/{wire_dtype.name}"

    def parts(_: int) -> Any:
        own = tf.cast(tf.add_n(vectors), wire_dtype)
        filled = tf.pad(own, [[0, filling]]) if filling else own
        return tf.reshape(filled, [firsts.size, row_length])

    received = firsts.exchange(firsts.on_devices(parts), label)

    def sum_of_part(i: int) -> Any:
        return tf.cast(tf.reduce_sum(tf.cast(received[i], tf.float32), axis=0), wire_dtype)

    [sums] = _gather(firsts, firsts.on_devices(sum_of_part), label)

    def whole(_: int) -> Any:
        values = tf.cast(sums[:length] if filling else sums, tf.float32)
        return values if scale == 1 else values * scale

    return collectives.on_devices(whole)


def gather_narrow(
    collectives: Collectives,
    tensors: PerClone,
    label: str,
    wire_dtype: tf.DType,
    num_rows: PerClone,
) -> PerClone:
    """Concatenates the group's tensors as `Collectives.gather`, in `wire_dtype` on the wire.

    Args:
      collectives: the ops of this step.
      tensors: of one shape [rows, ...] with at least one row; other dtypes than float32 stay exact.
      label: names the op, the same in every process.
      wire_dtype: a type of floats.
      num_rows: the rows, see `Collectives.gather`.

    Returns:
      For each clone a tensor [`size` * rows, ...].
    """
    if not packing.is_rounded(tensors[0], wire_dtype):
        return collectives.gather(tensors, label, num_rows)
    rounded = collectives.on_devices(lambda i: tf.cast(tensors[i], wire_dtype))
    gathered = _gather(collectives, rounded, f"{label}/{wire_dtype.name}", num_rows)
    return collectives.on_devices(lambda i: tf.cast(gathered[i], tf.float32))


def _gather(
    collectives: Collectives, tensors: PerClone, label: str, num_rows: PerClone | None = None
) -> PerClone:
    """Gathers 16-bit tensors as bits of float16, the one 16-bit type that TensorFlow gathers."""
    dtype = tensors[0].dtype
    sent = collectives.on_devices(lambda i: tf.bitcast(tensors[i], tf.float16))
    gathered = collectives.gather(sent, label, num_rows)
    return collectives.on_devices(lambda i: tf.bitcast(gathered[i], dtype))
