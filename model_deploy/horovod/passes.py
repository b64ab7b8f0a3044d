"""Gradients of several passes added up, and one update after them."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.horovod.operations import group
from model_deploy.updating import Condition

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
        self._condition = Condition()
        self._sums: list[Any] = []

    def gradients(self, pairs: Pairs, reduce: Callable[[Pairs], list[tuple[Any, Any]]]) -> Pairs:
        """The gradients of all passes so far: in the last pass those of all processes.

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
        # A run of a session with collective ops needs one in each process, so all meet in each.
        [count] = group(f"{self._name} passes").max([passed.assign_add(1)[tf.newaxis]], "count")
        added = [total.assign_add(g) for total, (g, _) in zip(self._sums, pairs, strict=True)]
        self._condition = Condition(tf.equal(count[0] % self._count, 0), always=added)
        own = [self._scaled_sum(total) for total in added]
        with self._condition.passed():
            sent = [tf.identity(total) for total in own]
        reduced = reduce(list(zip(sent, variables, strict=True)))
        return [
            (self._condition.choose(gradient, total), variable)
            for total, (gradient, variable) in zip(own, reduced, strict=True)
        ]

    def _scaled_sum(self, added: Any) -> Any:
        """A sum so far, of any shape, as it is sent.

        It is what `added` gives: of a variable that is read after it, TensorFlow's rewriting moves
        a cast to fewer bits before the reading, to where nothing has been added.
        """
        value = tf.identity(added)
        return value / self._count if self._averages else value

    def apply(self, gradients: Sequence[Any], update: Callable[[], Any]) -> Any:
        """An op that makes an update in the last pass only.

        Args:
          gradients: what the update is made of, tensors of any shapes.
          update: makes the op of the update.
        """
        with self._condition.passed(), tf.control_dependencies(gradients):
            updated = update()
        with tf.control_dependencies([updated]):
            cleared = [total.assign(tf.zeros_like(total)) for total in self._sums]
        return tf.group(*self._condition.done(cleared))


def _local(value: Any, name: str) -> Any:
    collections = [tf.GraphKeys.LOCAL_VARIABLES]
    return tf.Variable(value, trainable=False, collections=collections, name=name)
