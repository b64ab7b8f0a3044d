"""Packs, which send many small tensors as one vector; and moves of tensors in 16 bits."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import placement


def pack(tensors: Sequence[Any]) -> Any:
    """Concatenates the values of tensors of one dtype, of any shapes, into one vector."""
    flat = [tf.reshape(tensor, [-1]) for tensor in tensors]
    return flat[0] if len(flat) == 1 else tf.concat(flat, axis=0)


def unpack(vector: Any, shapes: Sequence[tf.TensorShape]) -> list[Any]:
    """Splits a vector made by `pack` into tensors of the given, fully known shapes."""
    sizes = [shape.num_elements() for shape in shapes]
    parts = [vector] if len(sizes) == 1 else tf.split(vector, sizes)
    return [tf.reshape(part, shape) for part, shape in zip(parts, shapes, strict=True)]


def is_small(tensor: Any) -> bool:
    """Whether a tensor should be packed, as its message costs more than to copy it in and out.

    False if its shape is unknown.
    """
    size = placement.tensor_bytes(tensor.shape, tensor.dtype)
    return size is not None and size <= placement.SMALL_BYTES


def is_rounded(tensor: Any, wire_dtype: tf.DType) -> bool:
    """Whether a tensor, of any shape, is cast in order to travel in `wire_dtype`."""
    return bool(tensor.dtype.base_dtype == tf.float32 and wire_dtype != tf.float32)


def move(tensor: Any, source: str, destination: str, wire_dtype: tf.DType) -> Any:
    """Moves a tensor from one device to another, in `wire_dtype` on the way.

    Args:
      tensor: of any shape; other dtypes than float32 are not rounded.
      source: device on which it is rounded.
      destination: device that needs the value.
      wire_dtype: a type of floats.

    Returns:
      A tensor of the same shape and dtype; `tensor` itself if it is not rounded.
    """
    if not is_rounded(tensor, wire_dtype):
        return tensor
    graph = tf.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), tf.name_scope("wire"):
        with tf.device(source):
            rounded = tf.cast(tensor, wire_dtype)
        with tf.device(destination):
            return tf.cast(rounded, tf.float32)


def move_packed(
    tensors: Sequence[Any], source: str, destination: str, wire_dtype: tf.DType = tf.float32
) -> list[Any]:
    """Moves tensors from one device to another, in one pack per dtype.

    Args:
      tensors: of known shapes.
      source: device on which the packs are made.
      destination: device that needs the values.
      wire_dtype: see `move`.

    Returns:
      A tensor on `destination` for each of `tensors`, of its shape and dtype.
    """
    moved: list[Any] = list(tensors)
    by_dtype: dict[tf.DType, list[int]] = {}
    for i, tensor in enumerate(tensors):
        by_dtype.setdefault(tensor.dtype.base_dtype, []).append(i)
    graph = tf.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), tf.name_scope("pack"):
        for indices in by_dtype.values():
            with tf.device(source):
                vector = pack([tensors[i] for i in indices])
            vector = move(vector, source, destination, wire_dtype)
            with tf.device(destination):
                parts = unpack(vector, [tensors[i].shape for i in indices])
            for i, part in zip(indices, parts, strict=True):
                moved[i] = part
    return moved


def move_rows(
    gradients: Sequence[tuple[Any, Any]],
    source: str,
    destination: str,
    wire_dtype: tf.DType = tf.float32,
) -> list[Any]:
    """Moves the rows of sparse gradients from one device to another, in one pack.

    Args:
      gradients: `(gradient, variable)` pairs; a gradient is an `IndexedSlices` of float32, with
        any number of rows.
      source: device on which the pack is made.
      destination: device that needs the rows.
      wire_dtype: see `move`.

    Returns:
      The `IndexedSlices`, with their values on `destination`.
    """
    graph = tf.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), tf.name_scope("pack_rows"):
        with tf.device(source):
            vector = pack([slices.values for slices, _ in gradients])
        vector = move(vector, source, destination, wire_dtype)
        with tf.device(destination):
            shapes = [variable.shape[1:] for _, variable in gradients]
            counts = [
                tf.size(slices.indices) * shape.num_elements()
                for (slices, _), shape in zip(gradients, shapes, strict=True)
            ]
            parts = tf.split(vector, tf.stack(counts), num=len(counts))
            return [
                tf.IndexedSlices(tf.reshape(part, [-1, *shape]), slices.indices, slices.dense_shape)
                for part, (slices, _), shape in zip(parts, gradients, shapes, strict=True)
            ]
