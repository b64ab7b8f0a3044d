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
        tensors with the same batch size; `RaggedTensor`s and `SparseTensor`s are split by
        examples, too.
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
    flat = [_as_tensor(tensor) for tensor in tf.nest.flatten(tensors)]
    _check_batch(flat, num_clones)
    split = [_split(tensor, num_clones) for tensor in _assert_even(flat, num_clones)]
    return [tf.nest.pack_sequence_as(tensors, list(parts)) for parts in zip(*split, strict=True)]


def _as_tensor(value: Any) -> Any:
    composite = isinstance(value, tf.RaggedTensor | tf.SparseTensor)
    return value if composite else tf.convert_to_tensor(value)


def _name(tensor: Any) -> str:
    if isinstance(tensor, tf.RaggedTensor):
        tensor = tensor.flat_values
    elif isinstance(tensor, tf.SparseTensor):
        tensor = tensor.values
    name: str = tensor.name
    return name


def _size(tensor: Any) -> Any:
    """Returns the number of examples, int64 []."""
    if isinstance(tensor, tf.RaggedTensor):
        return tf.cast(tensor.nrows(), tf.int64)
    if isinstance(tensor, tf.SparseTensor):
        return tensor.dense_shape[0]
    return tf.shape(tensor, out_type=tf.int64)[0]


def _split(tensor: Any, num_clones: int) -> list[Any]:
    """Returns equal parts, of shape [batch / num_clones, ...] each, in the kind of the tensor."""
    if isinstance(tensor, tf.SparseTensor):
        rest = tensor.dense_shape[1:]
        size = _size(tensor) // num_clones
        starts = [tf.concat([[part * size], tf.zeros_like(rest)], 0) for part in range(num_clones)]
        return [tf.sparse.slice(tensor, start, tf.concat([[size], rest], 0)) for start in starts]
    if isinstance(tensor, tf.RaggedTensor):
        known = tensor.shape.as_list()[0]
        size = (_size(tensor) if known is None else known) // num_clones
        return [tensor[part * size : (part + 1) * size] for part in range(num_clones)]
    parts: list[Any] = tf.split(tensor, num_clones)
    return parts


def _check_batch(flat: list[Any], num_clones: int) -> None:
    if not flat:
        raise ValueError("tensors must hold at least one tensor, got none")
    for tensor in flat:
        if tensor.shape.rank == 0:
            raise ValueError(f"tensors must have a batch dimension, got the scalar {_name(tensor)}")
    sizes = {_name(tensor): tensor.shape.as_list()[0] for tensor in flat if tensor.shape.rank}
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
    size = _size(flat[0])
    checks = [
        tf.debugging.assert_equal(
            _size(tensor), size, message="tensors must have the same batch size"
        )
        for tensor in flat[1:]
    ]
    even = tf.debugging.assert_equal(
        size % num_clones,
        tf.zeros([], tf.int64),
        message=f"the batch size must be a multiple of num_clones={num_clones}",
    )
    with tf.control_dependencies([even, *checks]):
        return [tf.identity(tensor) for tensor in flat]
