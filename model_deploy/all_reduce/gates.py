"""The gate of a step: what each update of a variable waits for, where replicas come and go.

A step that is cut short as another replica is lost must not leave half of the variables updated.
So all updates wait until everything that replicas exchange has arrived, and then for a function
that says whether the step may still be completed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

# The graph's one gate.  Not a string, see `hooks.py`.
_GATE = ("model_deploy", "gate")


def note_gate(gate: Callable[[], None]) -> None:
    """Notes in the default graph what each step calls before it updates the first variable.

    Args:
      gate: called without arguments; an error that it raises ends the step, which then has
        changed nothing.
    """
    tf.add_to_collection(_GATE, gate)


def gate_op(config: Any, needed: Sequence[Any]) -> Any:
    """The op that updates wait for; it calls the function that was noted, if one was.

    Args:
      config: the `DeploymentConfig`.
      needed: ops, or tensors of any shapes, that come first.
    """
    found = tf.get_collection(_GATE)
    with tf.control_dependencies(needed), tf.device(config.optimizer_device()):
        if not found:
            return tf.no_op(name="gate")

        def passed() -> bool:
            found[-1]()
            return True

        return tf.py_func(passed, [], tf.bool, name="gate").op
