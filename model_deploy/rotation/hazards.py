"""`order_changes`: each variable is changed and used in the order of the step that is not cut."""

from typing import Any

from model_deploy import internals, placement
from model_deploy.op_types import only_reads
from model_deploy.rotation.passage import Passage


def order_changes(passage: Passage, early: set[Any], late: set[Any]) -> None:
    """Makes ops of a run wait for what the rest of the run before does to their variables.

    An op that uses a variable waits for the late ops that change it; one that changes a variable
    waits for all late ops that use it.

    Args:
      passage: makes the ops that they wait for.
      early: ops of a run.
      late: ops of the rest of the run before, which may come beside them.
    """
    users_early, users_late = _users(early), _users(late)
    for variable, ops in users_early.items():
        of_rest = users_late.get(variable, {})
        changers = [op for op, changes in of_rest.items() if changes]
        for op, changes in ops.items():
            before = list(of_rest) if changes else changers
            if before:
                internals.add_control_inputs(op, [passage.gate(before, variable.device)])


def _users(ops: set[Any]) -> dict[Any, dict[Any, bool]]:
    """Returns by variable op the ops that use it, each with whether it may change it.

    What takes the value of a reference variable reads the variable's memory.
    """
    found: dict[Any, dict[Any, bool]] = {}
    for op in sorted(ops, key=lambda op: str(op.name)):
        for tensor in op.inputs:
            if not placement.is_variable_op(tensor.op):
                continue
            users = found.setdefault(tensor.op, {})
            users[op] = not only_reads(op.type)
            if internals.is_reference(tensor) and op.type == "Identity":
                for each in op.outputs[0].consumers():
                    if each in ops:
                        users.setdefault(each, False)
    return found
