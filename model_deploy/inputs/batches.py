"""Splits a batch over clones."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checks import check_at_least


def split_batch(tensors: Any, num_clones: int) -> list[Any]:
    """Splits a batch into equal parts, one per clone.

    >>> parts = split_batch({"image": tf.zeros([6, 28, 28, 1]), "label": tf.zeros([6])}, 3)
    >>> len(parts), parts[0]["image"].shape.as_list()
    (3, [2, 28, 28, 1])

    Args:
      tensors: a tensor of shape [batch, ...], or a structure (dict, list, tuple) of
        tensors with the same batch size.
      num_clones: number of parts; it must divide the batch size.

    Returns:
      `num_clones` structures like `tensors`, of shape [batch / num_clones, ...], in
      the order of the batch.

    Raises:
      ValueError: if `num_clones` is less than 1, there is no tensor, a tensor is a
        scalar, the batch sizes differ, or `num_clones` does not divide the batch size.
      tf.errors.InvalidArgumentError: the same, when the graph runs, for a batch size
        that is not known before.
    """
    check_at_least("num_clones", num_clones, 1)
    flat = [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(tensors)]
    _check_batch(flat, num_clones)
    split = [tf.split(tensor, num_clones) for tensor in _assert_even(flat, num_clones)]
    return [tf.nest.pack_sequence_as(tensors, list(parts)) for parts in zip(*split, strict=True)]


def _check_batch(flat: list[Any], num_clones: int) -> None:
    if not flat:
        raise ValueError("tensors must hold at least one tensor, got none")
    for tensor in flat:
        if tensor.shape.rank == 0:
            raise ValueError(f"tensors must have a batch dimension, got the scalar {tensor.name}")
    sizes = {tensor.name: tensor.shape.as_list()[0] for tensor in flat if tensor.shape.rank}
    known = {name: size for name, size in sizes.items() if size is not None}
    if len(set(known.values())) > 1:
        raise ValueError(f"tensors must have the same batch size, got {known}")
    for name, size in known.items():
        if size % num_clones:
            raise ValueError(
                f"the batch size must be a multiple of num_clones={num_clones}, got {size} ({name})"
            )


def _assert_even(flat: list[Any], num_clones: int) -> list[Any]:
    """Adds checks of batch sizes that are known only when the graph runs."""
    if all(tensor.shape.rank and tensor.shape.as_list()[0] is not None for tensor in flat):
        return flat
    size = tf.shape(flat[0])[0]
    checks = [
        tf.debugging.assert_equal(
            tf.shape(tensor)[0], size, message="tensors must have the same batch size"
        )
        for tensor in flat[1:]
    ]
    even = tf.debugging.assert_equal(
        size % num_clones,
        0,
        message=f"the batch size must be a multiple of num_clones={num_clones}",
    )
    with tf.control_dependencies([even, *checks]):
        return [tf.identity(tensor) for tensor in flat]
