"""Values that an update reads when it is made, where it begins, and waits, long before that."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

# Not a string: collections with other names do not go into checkpoints.
_LATE = ("model_deploy", "late_values")


def note_late(value: Any, make: Callable[[], Any]) -> None:
    """Notes in the default graph that a value changes between steps.

    Args:
      value: a tensor of any shape.
      make: builds the value once more; returns a tensor of the same dtype and shape.
    """
    tf.add_to_collection(_LATE, (value, make))


def read_late(ops: Iterable[Any], after: Sequence[Any]) -> None:
    """Makes ops take noted values as they are after others have been computed.

    A step that a process makes reads all values as they are when it begins.  The chief of
    synchronous replicas makes updates in a thread, which waits in the next update while the chief
    evaluates.

    Args:
      ops: the ops, such as those of an update.
      after: ops, and tensors of any shapes.
    """
    ops = set(ops)
    for value, make in tf.get_collection(_LATE):
        uses = [(index, op) for index, op in graph_walk.uses_of(value) if op in ops]
        if uses:
            with tf.control_dependencies(after):
                late = make()
            for index, op in uses:
                internals.replace_input(op, index, late)
