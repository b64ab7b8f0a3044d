"""Sums gradients, dense and sparse, over all clones of all replicas by collective ops."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy.collectives.narrow import sum_narrow
from model_deploy.collectives.ops import Collectives, PerClone
from model_deploy.collectives.rows import gather_rows
from model_deploy.gradients import GradientAndVariable

# The `(gradient, variable)` pairs of one variable, one per clone.
Column = Sequence[GradientAndVariable]


def exchange_gradients(
    collectives: Collectives,
    clone_gradients: Sequence[Sequence[GradientAndVariable]],
    total_loss: Any,
    scale: float,
    wire_dtype: tf.DType = tf.float32,
    *,
    rest: "Left | None" = None,
) -> tuple[list[list[GradientAndVariable]], Any]:
    """Sums gradients and losses over all clones of all replicas.

    Dense gradients travel in packs, the loss with them.  Sparse gradients stay sparse: their
    numbers of rows are exchanged first, then indices and rows, padded to the largest number; the
    padding is removed again.

    Args:
      collectives: the ops of this step.
      clone_gradients: for each clone of this process `(gradient, variable)` pairs of
        its own copies, in the same order.  A gradient is a `Tensor` of the variable's
        shape, an `IndexedSlices` over its rows, or None, which counts as zero.
      total_loss: the loss of this replica, a scalar; or None.
      scale: factor of the sums.
      wire_dtype: type in which float32 gradients are sent.  With another type than float32 the
        loss travels separately, unrounded, while gradients are computed.
      rest: gets what a rotated step leaves to the next one; None if nothing is left.

    Returns:
      For each clone its pairs with summed gradients, and the sum of the losses, a scalar or None.
      Variables without a gradient in every clone are left out and named in one warning.

    Raises:
      ValueError: if there is no gradient at all.
    """
    columns = _with_gradients(clone_gradients)
    sparse = [column for column in columns if _is_sparse(column)]
    dense = [column for column in columns if not _is_sparse(column)]
    losses = [] if total_loss is None else [tf.reshape(total_loss, [])]
    rounded = wire_dtype != tf.float32
    packed_losses = [] if rounded else losses

    def values(i: int) -> list[Any]:
        own = packed_losses if i == 0 else [tf.zeros_like(loss) for loss in packed_losses]
        return [_dense_gradient(*column[i]) for column in dense] + own

    loss_sums = [_sum_losses(collectives, loss, scale) for loss in losses if rounded]

    def sums_of(group: Collectives, vectors: PerClone, label: str) -> PerClone:
        return sum_narrow(group, vectors, label, scale, wire_dtype)

    variables = [column[0][1] for column in dense]
    sums = collectives.in_packs(
        collectives.on_devices(values),
        [*variables, *packed_losses],
        functools.partial(sums_of, collectives),
        None if rest is None else functools.partial(rest.run, sums_of),
    )
    for of_clones in list(zip(*sums, strict=True))[len(variables) :]:
        loss_sums.append(collectives.together(of_clones)[0])
    rows = _gather_rows(collectives, sparse, scale, wire_dtype)
    reduced = []
    for i, of_clone in enumerate(sums):
        of_dense, of_sparse = iter(of_clone), iter(rows[i])
        reduced.append([(next(of_sparse if _is_sparse(c) else of_dense), c[i][1]) for c in columns])
    return reduced, (loss_sums[0] if loss_sums else None)


class Left:
    """The part of an exchange that a rotated step leaves to the next one.

    Args:
      collectives: its ops, a sequence of their own.

    Attributes:
      ops: the first ops of it.
    """

    def __init__(self, collectives: Collectives) -> None:
        self._collectives = collectives
        self.ops: list[Any] = []

    def run(
        self,
        collective: Callable[[Collectives, PerClone, str], PerClone],
        vectors: PerClone,
        label: str,
    ) -> PerClone:
        """Runs a collective op on vectors, one for each clone, and notes where it begins."""
        group = self._collectives
        vectors = group.on_devices(lambda i: tf.identity(vectors[i], name="left"))
        self.ops += [vector.op for vector in vectors]
        return collective(group, vectors, label)


def _sum_losses(collectives: Collectives, loss: Any, scale: float) -> Any:
    """Returns the sum of all replicas' losses times `scale`, by one op of the first clones."""
    firsts = collectives.first_clones()
    [[total]] = firsts.in_packs(
        [[loss]], [loss], lambda vectors, label: firsts.sum(vectors, label, scale)
    )
    return total


def _with_gradients(clone_gradients: Sequence[Sequence[GradientAndVariable]]) -> list[Column]:
    """Groups the pairs by variable; leaves out variables without gradients, with a warning."""
    columns = list(zip(*clone_gradients, strict=True))
    used = [any(gradient is not None for gradient, _ in column) for column in columns]
    if not any(used):
        raise ValueError("the loss must depend on at least one variable to train, got none")
    if not all(used):
        names = [
            column[0][1].op.name
            for column, is_used in zip(columns, used, strict=True)
            if not is_used
        ]
        logging.warning("not trained, for no loss depends on them: %s", ", ".join(names))
    return [column for column, is_used in zip(columns, used, strict=True) if is_used]


def _is_sparse(column: Column) -> bool:
    return all(g is None or isinstance(g, tf.IndexedSlices) for g, _ in column)


def _dense_gradient(gradient: Any, variable: Any) -> Any:
    """Returns a dense gradient; zeros for None, and a dense sum for sparse rows."""
    if gradient is None:
        return tf.zeros(variable.shape, variable.dtype.base_dtype)
    if isinstance(gradient, tf.IndexedSlices):  # another clone's is dense
        return tf.unsorted_segment_sum(
            gradient.values, gradient.indices, variable.shape.as_list()[0]
        )
    return gradient


def _gather_rows(
    collectives: Collectives, columns: Sequence[Column], scale: float, wire_dtype: tf.DType
) -> list[list[Any]]:
    """Returns for each clone the rows of all clones, one `IndexedSlices` per sparse gradient."""

    def slices_of(column: Column) -> PerClone:
        return collectives.on_devices(lambda i: _as_slices(*column[i]))

    def count_rows(i: int) -> Any:
        return tf.stack([tf.size(of_column[i].indices) for of_column in slices])[tf.newaxis]

    if not columns:
        return collectives.on_devices(lambda _: [])
    slices = [slices_of(column) for column in columns]
    names = [column[0][1].name for column in columns]
    counts = collectives.gather(collectives.on_devices(count_rows), f"rows of {names}")
    gathered = [
        _gather_slices(
            collectives,
            of_column,
            [of_clone[:, k] for of_clone in counts],
            name,
            scale=scale,
            wire_dtype=wire_dtype,
        )
        for k, (name, of_column) in enumerate(zip(names, slices, strict=True))
    ]
    return [list(of_clone) for of_clone in zip(*gathered, strict=True)]


def _gather_slices(
    collectives: Collectives,
    slices: PerClone,
    counts: PerClone,
    name: str,
    *,
    scale: float,
    wire_dtype: tf.DType,
) -> PerClone:
    """Concatenates the `slices` of all ranks for each clone; rank r has `counts[r]` rows."""

    def gather(part: str) -> PerClone:
        tensors = [getattr(of_clone, part) for of_clone in slices]
        return gather_rows(collectives, tensors, counts, f"{name} {part}", wire_dtype)

    indices, values = gather("indices"), gather("values")
    return collectives.on_devices(
        lambda i: tf.IndexedSlices(
            values[i] if scale == 1 else values[i] * scale, indices[i], slices[i].dense_shape
        )
    )


def _as_slices(gradient: Any, variable: Any) -> Any:
    """Returns a sparse gradient with a static row shape; for None one without rows."""
    row_shape = variable.shape.as_list()[1:]
    if gradient is None:
        dtype = variable.dtype.base_dtype
        return tf.IndexedSlices(tf.zeros([0, *row_shape], dtype), tf.zeros([0], tf.int64))
    return tf.IndexedSlices(
        tf.reshape(gradient.values, [-1, *row_shape]),
        tf.cast(gradient.indices, tf.int64),
        gradient.dense_shape,
    )
