"""Gradients of several passes added up, and one update after them."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

Pairs = Sequence[tuple[Any, Any]]


class Passes:
    """Counts passes and adds up their gradients, in local variables.

    Args:
      count: passes for each update.
      averages: whether their gradients are averaged; else they are summed.
      name: of the scope of the variables.
    """

    def __init__(self, count: int, averages: bool, name: str) -> None:
        self._count, self._averages, self._name = count, averages, name
        self._is_last: Any = None
        self._sums: list[Any] = []

    def gradients(self, pairs: Pairs, reduce: Callable[[Pairs], list[tuple[Any, Any]]]) -> Pairs:
        """The gradients of all passes so far, of all processes; those of the last pass count.

        Args:
          pairs: `(gradient, variable)` pairs, dense, of the shapes of the variables.
          reduce: takes such pairs, and returns them reduced.

        Returns:
          Pairs with tensors of those shapes.

        Raises:
          ValueError: for a sparse gradient.
        """
        for gradient, variable in pairs:
            if isinstance(gradient, tf.IndexedSlices):
                raise ValueError(
                    "sparse_as_dense must be True with backward_passes_per_step > 1, got False "
                    f"and a sparse gradient of {variable.op.name}"
                )
        variables = [variable for _, variable in pairs]
        with tf.name_scope(self._name), tf.init_scope():
            passed = _local(tf.zeros([], tf.int64), "passes")
            self._sums = [_local(tf.zeros(v.shape, v.dtype.base_dtype), "sum") for v in variables]
        added = [total.assign_add(g) for total, (g, _) in zip(self._sums, pairs, strict=True)]
        with tf.control_dependencies(added):
            self._is_last = tf.equal(passed.assign_add(1) % self._count, 0)

        with tf.control_dependencies([self._is_last]):
            scale = 1 / self._count if self._averages else 1
            sums = [total.read_value() for total in self._sums]
        own = sums if scale == 1 else [total * scale for total in sums]
        # In every pass: in a branch of a condition collective ops have waited for ever.
        return reduce(list(zip(own, variables, strict=True)))

    def apply(self, gradients: Sequence[Any], update: Callable[[], Any]) -> Any:
        """An op that makes an update in the last pass only.

        Args:
          gradients: what the update is made of, tensors of any shapes.
          update: makes the op of the update.
        """

        def apply_and_begin_anew() -> Any:
            with tf.control_dependencies([update()]):
                return tf.group(*(total.assign(tf.zeros_like(total)) for total in self._sums))

        with tf.control_dependencies(gradients):
            return tf.group(tf.cond(self._is_last, apply_and_begin_anew, tf.no_op))


def _local(value: Any, name: str) -> Any:
    collections = [tf.GraphKeys.LOCAL_VARIABLES]
    return tf.Variable(value, trainable=False, collections=collections, name=name)
