"""Walks over the ops of a graph, against the direction of the tensors."""

from collections.abc import Iterable
from typing import Any

from model_deploy import placement


def ancestors(ops: Iterable[Any], *, control_inputs: bool = False) -> set[Any]:
    """The given ops and all that they need, directly or not.

    Args:
      ops: operations of one graph.
      control_inputs: whether control inputs count, too.
    """
    found: set[Any] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in found:
            continue
        found.add(op)
        waiting.extend(tensor.op for tensor in op.inputs)
        if control_inputs:
            waiting.extend(op.control_inputs)
    return found


def variables_read(tensors: Iterable[Any]) -> set[str]:
    """Names of the variable ops that the values of `tensors` depend on."""
    needed = ancestors(tensor.op for tensor in tensors)
    return {op.name for op in needed if placement.is_variable_op(op)}
