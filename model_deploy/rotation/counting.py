"""`count_ahead`: the global step is known before the rest of the step before has counted it."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.op_types import is_assignment
from model_deploy.rotation.passage import Passage

# Types of ops that return a variable's whole value.
_WHOLE = ("ReadVariableOp", "Identity", "DeepCopy")


def count_ahead(passage: Passage, early: set[Any], late: set[Any]) -> None:
    """Gives those that read the global step what it will be when the rest has counted it.

    The optimizer counts a step when all of its updates are made.  A model that reads the step, for
    random numbers or for a rate, would wait for all of them.

    Args:
      passage: whether there is a rest.
      early: ops of a run.
      late: ops of the rest of the run before.
    """
    step = tf.train.get_global_step()
    counts = [op for op in late if any(tensor.op is step.op for tensor in op.inputs)]
    if len(counts) != 1 or not is_assignment(counts[0].type) or "Add" not in counts[0].type:
        return
    [count] = counts
    with tf.device(step.device), tf.name_scope("rotation/counted"), tf.control_dependencies(None):
        before = tf.raw_ops.DeepCopy(x=step.read_value())
        more = tf.where(passage.is_open, tf.ones_like(before), tf.zeros_like(before))
        ahead = before + more
    internals.add_control_inputs(count, [ahead.op])
    for op in early:
        if op.type in _WHOLE and op.inputs[0].op is step.op:
            for index, user in graph_walk.uses_of(op.outputs[0]):
                if user in early:
                    internals.replace_input(user, index, ahead)
