"""`add_missing_members`: what is fetched alone runs collective ops on all devices of the process."""

from typing import Any

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
            members.setdefault(each.get_attr(_KEY), []).append(each)
    needed: set[Any] = set()
    missing = [op]
    while missing:
        if missing != [op]:
            internals.add_control_inputs(op, missing)
        found = graph_walk.ancestors(missing, control_inputs=True, known=needed)
        needed |= found
        keys = {each.get_attr(_KEY) for each in found if each.type.startswith(_PREFIX)}
        missing = [each for key in keys for each in members[key] if each not in needed]
