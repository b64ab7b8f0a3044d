"""The gate of a step: one op that all updates wait for, where replicas come and go.

A step that is cut short by the loss of a replica must not leave half of the variables updated.  So
all updates wait until all values from other replicas have arrived, and then for a function that
raises if the step may no longer be completed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.op_types import changes_variable

# The graph's one gate.  Not a string, see `hooks.py`.
_GATE = ("model_deploy", "gate")


def note_gate(gate: Callable[[], None]) -> None:
    """Notes in the default graph a function that each step calls before its first update.

    Args:
      gate: called without arguments; if it raises, the step ends and no variable has changed.
    """
    tf.add_to_collection(_GATE, gate)


def gate_op(config: Any, needed: Sequence[Any]) -> Any:
    """Returns the op that updates wait for; it calls the function given to `note_gate`, if any.

    Args:
      config: the `DeploymentConfig`.
      needed: ops, or tensors of any shapes, that the gate waits for.
    """
    found = tf.get_collection(_GATE)
    with tf.control_dependencies(needed), tf.device(config.optimizer_device()):
        if not found:
            return tf.no_op(name="gate")

        def passed() -> bool:
            found[-1]()
            return True

        return tf.py_func(passed, [], tf.bool, name="gate").op


def check_updates_wait(train_op: Any, gate: Any) -> None:
    """Checks that no op of a step changes a global variable before the gate.

    Reads the collection `GLOBAL_VARIABLES`.

    Args:
      train_op: a tensor, or op, that makes the step.
      gate: the op that `gate_op` returned.

    Raises:
      ValueError: naming an op that does not wait.
    """
    needed = graph_walk.ancestors([getattr(train_op, "op", train_op)], control_inputs=True)
    takers: dict[Any, list[Any]] = {}
    for op in needed:
        for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            takers.setdefault(before, []).append(op)
    later: set[Any] = set()
    waiting = [gate]
    while waiting:
        op = waiting.pop()
        if op not in later:
            later.add(op)
            waiting.extend(takers.get(op, ()))
    variables = {variable.op.name for variable in tf.global_variables()}
    early = sorted(
        op.name
        for op in needed - later
        if changes_variable(op.type) and op.inputs and op.inputs[0].op.name in variables
    )
    if early:
        raise ValueError(
            "with global_parts a step must change variables by its optimizer and by update ops "
            f"alone, got {early[0]}, which changes one while losses are computed"
        )
