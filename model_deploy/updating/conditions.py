"""`Condition`: which ops come before the updates of a step, and whether the updates are made.

An op with a control input from the untaken output of a `Switch` does not run, nor do the ops after
it, up to a `Merge`: so TensorFlow 1 builds conditions.  Here a `Switch` also becomes a control
input of existing ops, such as updates of batch-norm statistics.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.op_types import only_reads


class Condition:
    """Makes updates wait for other ops, and skips them where a predicate is false.

    Args:
      predicate: a bool scalar; None for updates that are always made.
      first: ops, or tensors of any shapes, that each update waits for.
      always: ops that run in each step, also when the updates are skipped.

    Attributes:
      predicate: as given.
      is_always_true: whether updates are always made.
    """

    def __init__(
        self, predicate: Any = None, first: Sequence[Any] = (), always: Sequence[Any] = ()
    ) -> None:
        self.predicate, self.is_always_true = predicate, predicate is None
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
        """Opens control dependencies under which updates are to be made."""
        yes = [] if self.is_always_true else [self._yes]
        with tf.control_dependencies([*self._first, *yes]):
            yield

    def hold_back(self, ops: Sequence[Any]) -> Sequence[Any]:
        """Makes existing ops change variables only where the predicate is true.

        Ops that the predicate itself depends on are left alone.

        Args:
          ops: ops, or tensors of any shapes; ops that they depend on are held back as well.

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

    def choose(self, made: Any, otherwise: Any) -> Any:
        """Returns a tensor that is there in each step.

        Args:
          made: its value where the predicate is true, made of tensors made in `passed`.
          otherwise: its value where it is false; of the same shape and dtype.
        """
        if self.is_always_true:
            return made
        with tf.control_dependencies([self._no]):
            otherwise = tf.identity(otherwise)
        chosen = tf.raw_ops.Merge(inputs=[otherwise, made]).output
        chosen.set_shape(made.shape)
        return chosen

    def done(self, updates: Sequence[Any]) -> list[Any]:
        """Returns ops that run in each step, after the updates if these are made.

        Args:
          updates: ops made in `passed` or given to `hold_back`.
        """
        if self.is_always_true:
            return list(updates)
        with tf.control_dependencies(updates):
            yes = tf.identity(self._yes)
        merged = tf.raw_ops.Merge(inputs=[self._no, yes])
        with tf.control_dependencies([merged.output, *self._always]):
            return [tf.no_op(name="updated_or_left")]


def may_change_state(op: Any) -> bool:
    """Whether an op takes a variable or another resource and may change it."""
    takes = any(
        tensor.dtype == tf.resource or internals.is_reference(tensor) for tensor in op.inputs
    )
    return takes and not only_reads(op.type)
