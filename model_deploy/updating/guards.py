"""Updates that are made only if a condition holds.

An op with a control input from the side of a `Switch` that is not taken does not run, nor does
what comes after it, until a `Merge`: that is what conditions of TensorFlow 1 are made of.  Here
it also holds back ops that were made before, such as those of batch-norm statistics.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

# What takes a variable, and leaves it as it is.
_READS = {
    *("DeepCopy", "Identity", "ReadVariableOp", "ResourceGather", "ResourceGatherNd"),
    *("Shape", "Size", "VariableShape", "IsVariableInitialized", "VarIsInitializedOp"),
}


class AlwaysOpen:
    """The guard of updates that are always made."""

    def passed(self) -> Any:
        """For a `with` block, which changes nothing."""
        return contextlib.nullcontext()

    def held(self, ops: Sequence[Any]) -> Sequence[Any]:
        """The ops, as they are."""
        return ops

    def done(self, updates: Sequence[Any]) -> list[Any]:
        """The updates themselves."""
        return list(updates)


class Guard(AlwaysOpen):
    """Lets updates be made only where `condition` is true.

    Args:
      condition: a bool scalar.
      always: ops that `done` waits for, whether the updates are made or not.
    """

    def __init__(self, condition: Any, always: Sequence[Any] = ()) -> None:
        self._always = list(always)
        self._needed = graph_walk.ancestors([condition.op], control_inputs=True)
        with tf.name_scope("guard"):
            switch = tf.raw_ops.Switch(data=condition, pred=condition)
            self._no = tf.identity(switch.output_false, name="no")
            self._yes = tf.identity(switch.output_true, name="yes")

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        """A `with` block whose ops run only where the condition is true."""
        with tf.control_dependencies([self._yes]):
            yield

    def held(self, ops: Sequence[Any]) -> Sequence[Any]:
        """Holds back what changes variables for the sake of `ops`, where the condition is false.

        What the condition itself needs has run by then, and stays as it is.

        Args:
          ops: ops, or tensors of any shapes, made before; functions among them are left out.

        Returns:
          `ops`.
        """
        ends = [getattr(op, "op", op) for op in ops if not callable(op)]
        for op in graph_walk.ancestors(ends, control_inputs=True, known=self._needed):
            if changes_a_variable(op):
                internals.add_control_inputs(op, [self._yes.op])
        return ops

    def done(self, updates: Sequence[Any]) -> list[Any]:
        """One op that runs in each step: after the updates, if they are made.

        Args:
          updates: ops that were made in `passed`, or given to `held`.
        """
        with tf.control_dependencies(updates):
            yes = tf.identity(self._yes)
        merged = tf.raw_ops.Merge(inputs=[self._no, yes])
        with tf.control_dependencies([merged.output, *self._always]):
            return [tf.no_op(name="updated_or_left")]


def changes_a_variable(op: Any) -> bool:
    """Whether an op takes a variable, or something else that lasts, and may change it."""
    takes = any(
        tensor.dtype == tf.resource or internals.is_reference(tensor) for tensor in op.inputs
    )
    return takes and op.type not in _READS
