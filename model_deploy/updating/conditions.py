"""`Condition`: after what, and whether at all, a step makes its updates.

An op with a control input from the side of a `Switch` that is not taken does not run, nor does
an op that comes after it, until a `Merge`: that is what conditions of TensorFlow 1 are made of.
Here it also holds back ops that were made before, such as those of batch-norm statistics.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.op_types import only_reads


class Condition:
    """Lets updates be made after ops that come first, and only where a predicate is true.

    Args:
      predicate: a bool scalar; None for updates that are always made.
      first: ops, or tensors of any shapes, that each update waits for.
      always: ops that `done` waits for, whether the updates are made or not.

    Attributes:
      is_always_true: whether updates are always made.
    """

    def __init__(
        self, predicate: Any = None, first: Sequence[Any] = (), always: Sequence[Any] = ()
    ) -> None:
        self.is_always_true = predicate is None
        self._first = list(first)
        self._always = list(always)
        if predicate is None:
            return
        self._needed = graph_walk.ancestors([predicate.op], control_inputs=True)
        with tf.name_scope("guard"):
            switch = tf.raw_ops.Switch(data=predicate, pred=predicate)
            self._no = tf.identity(switch.output_false, name="no")
            self._yes = tf.identity(switch.output_true, name="yes")

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        """A `with` block of updates."""
        yes = [] if self.is_always_true else [self._yes]
        with tf.control_dependencies([*self._first, *yes]):
            yield

    def hold_back(self, ops: Sequence[Any]) -> Sequence[Any]:
        """Lets ops that were made before change variables only where the predicate is true.

        An op that the predicate itself needs has run by then, and stays as it is.

        Args:
          ops: ops, or tensors of any shapes; all that they need is held back as well.

        Returns:
          `ops`.
        """
        if self.is_always_true:
            return ops
        ends = [getattr(op, "op", op) for op in ops]
        for op in graph_walk.ancestors(ends, control_inputs=True, known=self._needed):
            if may_change_state(op):
                internals.add_control_inputs(op, [self._yes.op])
        return ops

    def done(self, updates: Sequence[Any]) -> list[Any]:
        """Ops that run in each step: after the updates, if they are made.

        Args:
          updates: ops that were made in `passed`, or given to `hold_back`.
        """
        if self.is_always_true:
            return list(updates)
        with tf.control_dependencies(updates):
            yes = tf.identity(self._yes)
        merged = tf.raw_ops.Merge(inputs=[self._no, yes])
        with tf.control_dependencies([merged.output, *self._always]):
            return [tf.no_op(name="updated_or_left")]


def may_change_state(op: Any) -> bool:
    """Whether an op takes a variable, or something else that lasts, and may change it."""
    takes = any(
        tensor.dtype == tf.resource or internals.is_reference(tensor) for tensor in op.inputs
    )
    return takes and not only_reads(op.type)
