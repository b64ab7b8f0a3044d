"""Gradients of several clones or towers: their sum or mean, dense and sparse."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

# `(gradient, variable)`; a gradient is a `Tensor`, an `IndexedSlices` or None.
GradientAndVariable = tuple[Any, Any]

_standing_in = contextvars.ContextVar("gradients of others will replace these", default=False)


@contextlib.contextmanager
def standing_in() -> Iterator[None]:
    """A `with` block whose gradients stand for those of all clones, which will replace them.

    Values that such a gradient takes from all clones may be those of its own clone.
    """
    token = _standing_in.set(True)
    try:
        yield
    finally:
        _standing_in.reset(token)


def stand_in() -> bool:
    """Whether gradients that are computed now only stand for others, see `standing_in`."""
    return _standing_in.get()


def sum_gradients(
    clone_gradients: Sequence[Sequence[GradientAndVariable]],
    device_of: Callable[[Any], str] | None = None,
) -> list[GradientAndVariable]:
    """Sums each variable's gradients over the clones; sparse gradients stay sparse.

    Args:
      clone_gradients: one list per clone of `(gradient, variable)` pairs, in the
        same order.  A gradient is a `Tensor` of the variable's shape, an
        `IndexedSlices` over its rows, or None, which counts as zero.
      device_of: returns the device on which to sum a variable's gradients if one is dense; by
        default they are summed on the device scope of the caller.

    Returns:
      `(gradient, variable)` pairs in the same order.  Variables without a gradient in every clone
      are left out and named in one logged warning.  The sum of `IndexedSlices` holds the rows of
      all clones, a row several times where several clones use it.

    Raises:
      ValueError: if there is no clone, or the clones list different variables.
    """
    _check_variables(clone_gradients)
    summed, without = [], []
    for pairs in zip(*clone_gradients, strict=True):
        variable = pairs[0][1]
        gradients = [gradient for gradient, _ in pairs if gradient is not None]
        if gradients:
            with _on_device_of(variable, gradients, device_of):
                summed.append((_sum(gradients, f"{variable.op.name}/sum_grads"), variable))
        else:
            without.append(variable.op.name)
    if without:
        logging.warning("not trained, for no loss depends on them: %s", ", ".join(without))
    return summed


def average_gradients(
    tower_gradients: Sequence[Sequence[GradientAndVariable]],
) -> list[GradientAndVariable]:
    """Averages each variable's gradients over hand-written towers.

    With equal parts of a batch in each tower, the average is the gradient of the mean loss over
    the whole batch.

    >>> v = tf.get_variable("average_gradients_example", [2])
    >>> towers = [[(tf.constant([1.0, 2.0]), v)], [(tf.constant([3.0, 6.0]), v)]]
    >>> [(gradient, _)] = average_gradients(towers)
    >>> print(tf.Session().run(gradient))
    [2. 4.]

    Args:
      tower_gradients: what `optimizer.compute_gradients` returned, for each tower: `(gradient,
        variable)` pairs in the same order.  A gradient is a `Tensor` of the variable's shape, an
        `IndexedSlices` over its rows, or None, which counts as zero.

    Returns:
      `(gradient, variable)` pairs for `optimizer.apply_gradients`; see `sum_gradients`.

    Raises:
      ValueError: if there is no tower, or the towers list different variables.
    """
    scale = 1.0 / max(1, len(tower_gradients))
    return [
        (scale_gradient(gradient, scale), var) for gradient, var in sum_gradients(tower_gradients)
    ]


def clip_by_global_norm(
    gradients: Sequence[GradientAndVariable], max_norm: float
) -> list[GradientAndVariable]:
    """Scales all gradients by `min(1, max_norm / their joint L2 norm)`.

    Section 3.2 of Pascanu et al., https://arxiv.org/abs/1211.5063.  Repeated rows of a sparse
    gradient are summed first, so that the norm is that of the dense gradient.

    Args:
      gradients: `(gradient, variable)` pairs; a gradient is a `Tensor` of the variable's
        shape or an `IndexedSlices` over its rows.
      max_norm: largest joint L2 norm of the result.

    Returns:
      The pairs with the scaled gradients, of the same shapes; a sparse one has each row once.

    Raises:
      ValueError: if `max_norm` is not more than 0.
    """
    if not max_norm > 0:
        raise ValueError(f"clip_norm must be more than 0, got {max_norm}")
    unique = [_add_up_rows(gradient) for gradient, _ in gradients]
    of_dtype: dict[tf.DType, list[int]] = {}
    for i, gradient in enumerate(unique):
        of_dtype.setdefault(gradient.dtype, []).append(i)
    # TensorFlow's functions take tensors of one type.
    norms = [tf.linalg.global_norm([unique[i] for i in own]) for own in of_dtype.values()]
    norm = norms[0]
    if len(norms) > 1:
        norm = tf.linalg.global_norm([tf.cast(each, tf.float32) for each in norms])
    norm = tf.where(norm < max_norm, tf.constant(max_norm, norm.dtype), norm)  # 1 / 0 is infinite
    clipped: list[Any] = [None] * len(unique)
    for dtype, own in of_dtype.items():
        gradients_of_dtype = [unique[i] for i in own]
        scaled, _ = tf.clip_by_global_norm(gradients_of_dtype, max_norm, tf.cast(norm, dtype))
        for i, gradient in zip(own, scaled, strict=True):
            clipped[i] = gradient
    return [(gradient, var) for gradient, (_, var) in zip(clipped, gradients, strict=True)]


def values_of(gradients: Sequence[GradientAndVariable]) -> list[Any]:
    """Returns the value tensors of gradients: of the variables' shapes, or rows if sparse."""
    found = [g.values if isinstance(g, tf.IndexedSlices) else g for g, _ in gradients]
    return [value for value in found if value is not None]


def _check_variables(clone_gradients: Sequence[Sequence[GradientAndVariable]]) -> None:
    if not clone_gradients:
        raise ValueError("gradients must be given for at least one clone, got none")
    names = [[variable.name for _, variable in pairs] for pairs in clone_gradients]
    for i, other in enumerate(names):
        if other != names[0]:
            raise ValueError(
                f"clones must list the same variables in the same order, got {names[0]} "
                f"for clone 0 and {other} for clone {i}"
            )


def _on_device_of(
    variable: Any, gradients: Sequence[Any], device_of: Callable[[Any], str] | None
) -> contextlib.AbstractContextManager[Any]:
    """Opens the device on which to sum the gradients, `device_of(variable)` if any is dense."""
    are_rows = all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients)
    if device_of is None or len(gradients) == 1 or are_rows:
        return contextlib.nullcontext()
    return tf.device(device_of(variable))


def _sum(gradients: Sequence[Any], name: str) -> Any:
    sparse = [g for g in gradients if isinstance(g, tf.IndexedSlices)]
    dense = [g for g in gradients if not isinstance(g, tf.IndexedSlices)]
    if not dense:
        return _concat_rows(sparse, name)
    total = dense[0] if len(gradients) == 1 else tf.add_n(dense, name=name)
    for rows in sparse:  # added to the dense sum, without a second dense tensor
        total = tf.tensor_scatter_nd_add(total, rows.indices[:, tf.newaxis], rows.values)
    return total


def _concat_rows(sparse: Sequence[Any], name: str) -> Any:
    if len(sparse) == 1:
        return sparse[0]
    if all(rows.indices is sparse[0].indices for rows in sparse):
        total = tf.add_n([rows.values for rows in sparse], name=name)
        return tf.IndexedSlices(total, sparse[0].indices, sparse[0].dense_shape)
    return tf.IndexedSlices(
        tf.concat([rows.values for rows in sparse], axis=0, name=name),
        tf.concat([rows.indices for rows in sparse], axis=0, name=f"{name}_indices"),
        sparse[0].dense_shape,
    )


def scale_gradient(gradient: Any, scale: Any) -> Any:
    """Multiplies a gradient, a `Tensor` or `IndexedSlices`, by a number or scalar."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values * scale, gradient.indices, gradient.dense_shape)
    return gradient * scale


def _add_up_rows(gradient: Any) -> Any:
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, positions = tf.unique(gradient.indices)
    values = tf.unsorted_segment_sum(gradient.values, positions, tf.size(indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)
