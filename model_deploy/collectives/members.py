"""`add_missing_members`: what is fetched alone runs collective ops on all devices."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

_PREFIX, _KEY = "Collective", "instance_key"


def add_missing_members(op: Any) -> None:
    """Lets an op need every member, in this process, of the collective ops of which it needs one.

    A collective op waits for its members on all devices.  A step runs all of them; an op that is
    fetched alone may need those of one device, and would wait for ever.  Members in other
    processes are run by what these fetch.

    Args:
      op: one that no collective op needs; it gets control inputs.
    """
    members: dict[int, list[Any]] = {}
    for each in op.graph.get_operations():
        if each.type.startswith(_PREFIX):
            members.setdefault(_key(each), []).append(each)
    needed: set[Any] = set()
    missing = [op]
    while missing:
        if missing != [op]:
            internals.add_control_inputs(op, missing)
        found = graph_walk.ancestors(missing, control_inputs=True, known=needed)
        needed |= found
        keys = {_key(each) for each in found if each.type.startswith(_PREFIX)}
        missing = [each for key in keys for each in members[key] if each not in needed]


def _key(op: Any) -> int:
    """The instance key: an attribute, or of newer ops an input."""
    if _KEY in op.node_def.attr:
        return int(op.get_attr(_KEY))
    place = [argument.name for argument in op.op_def.input_arg].index(_KEY)
    return int(tf.get_static_value(op.inputs[place]))
