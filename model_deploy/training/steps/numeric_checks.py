"""Finds the op that first gives NaN or Inf in a step."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.op_types import VIEWS

_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
# Types of ops between which a step computes only what a condition asks for.
_SWITCHES, _ENDS = ("Switch", "RefSwitch"), ("Merge", "RefMerge", "Exit", "RefExit")


class NumericChecks:
    """Checks all float values that a step computes and that an op of it takes.

    Values inside of functions and of TensorFlow 1's loops and conditions are checked where they
    come out.  Not checked are constants, where infinity is intended, reads of reference variables,
    which share the variable's memory and may already show the update, and what is not computed in
    each step, such as an update that a condition may leave out.

    Args:
      train_op: the tensor that makes a step.

    Attributes:
      first_bad: an int64 scalar, number of the first op, in the order of creation, with a value
        that is not finite; -1 if all are finite.
    """

    def __init__(self, train_op: Any) -> None:
        needed = graph_walk.ancestors([train_op.op], control_inputs=True)
        switches = [op for op in needed if op.type in _SWITCHES]
        always = needed - graph_walk.descendants(switches, needed, but_not=_ENDS)
        self._names = []
        finite = []
        shared: set[Any] = set()
        for op in tf.get_default_graph().get_operations():
            if op not in always or op.type == "Const" or internals.in_old_control_flow(op):
                continue
            if op.type in VIEWS and (
                internals.is_reference(op.inputs[0]) or op.inputs[0].op in shared
            ):
                shared.add(op)
                continue
            for output in op.outputs:
                if output.dtype in _FLOATS and (op is train_op.op or _is_taken(output, needed)):
                    self._names.append(op.name)
                    with tf.device(op.device):
                        finite.append(tf.reduce_all(tf.math.is_finite(output)))
        all_finite = tf.stack(finite)
        first = tf.argmin(tf.cast(all_finite, tf.int32))
        self.first_bad = tf.where(tf.reduce_all(all_finite), tf.constant(-1, tf.int64), first)

    def name(self, number: int) -> str:
        """Returns the name of an op by its number."""
        return self._names[number]


def _is_taken(tensor: Any, ops: set[Any]) -> bool:
    """Whether one of some ops has a tensor, of any shape, as an input.

    What none takes may be of another shape than TensorFlow says, as are the last outputs of the
    gradient of a fused batch norm.
    """
    return any(op in ops for op in tensor.consumers())
