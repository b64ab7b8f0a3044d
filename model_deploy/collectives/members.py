"""`add_missing_members`: lets an op that needs collective ops be fetched alone."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

_PREFIX = "Collective"
_Key = tuple[int | None, ...]


def add_missing_members(op: Any) -> None:
    """Makes `op` depend on all members, in this process, of each collective op that it needs.

    A collective op waits for its members on all devices.  A step runs all members; an op that is
    fetched alone may need the member of one device only, and would wait forever.  Other processes
    must run their own members.

    Args:
      op: gets control inputs; no collective op may depend on it.
    """
    members: dict[_Key, list[Any]] = {}
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


def _key(op: Any) -> _Key:
    """Returns the keys of a collective op and its group: attributes, or inputs of newer ops.

    An instance key that a run computes is None: such an op has a group of its own.
    """
    return tuple(_number(op, name) for name in ("group_key", "instance_key"))


def _number(op: Any, name: str) -> int | None:
    if name in op.node_def.attr:
        return int(op.get_attr(name))
    place = [argument.name for argument in op.op_def.input_arg].index(name)
    value = tf.get_static_value(op.inputs[place])
    return None if value is None else int(value)
