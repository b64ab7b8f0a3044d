"""Walks through a graph: which ops a value needs, which ops call functions, which ops are new."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import placement

# Types of ops that call functions and get more outputs when their gradient is built.
CALLERS = (
    *("While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"),
    *("PartitionedCall", "StatefulPartitionedCall"),
)


def ancestors(
    ops: Iterable[Any], *, control_inputs: bool = False, known: Collection[Any] = ()
) -> set[Any]:
    """Returns the given ops and all ops that they depend on, directly or not.

    Args:
      ops: operations of one graph.
      control_inputs: whether to follow control inputs as well.
      known: ops to leave out; the walk does not go beyond them.
    """
    found: set[Any] = set()
    waiting = list(ops)
    while waiting:
        op = waiting.pop()
        if op in found or op in known:
            continue
        found.add(op)
        waiting.extend(tensor.op for tensor in op.inputs)
        if control_inputs:
            waiting.extend(op.control_inputs)
    return found


def descendants(
    ops: Iterable[Any], within: Iterable[Any], *, but_not: Collection[str] = ()
) -> set[Any]:
    """Returns the ops of a set that depend on some ops, directly or not, and these if in the set.

    Args:
      ops: operations of one graph.
      within: the set; control inputs count as inputs do.
      but_not: types of ops that are left out; the walk does not go beyond them.
    """
    takers: dict[Any, list[Any]] = {}
    allowed = {op for op in within if op.type not in but_not}
    for op in allowed:
        for each in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            takers.setdefault(each, []).append(op)
    found: set[Any] = set()
    waiting = [op for op in ops if op in allowed]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting.extend(takers.get(op, ()))
    return found


def variables_read(tensors: Iterable[Any]) -> set[str]:
    """Returns the names of the variable ops that `tensors`, of any shapes, depend on."""
    needed = ancestors(tensor.op for tensor in tensors)
    return {op.name for op in needed if placement.is_variable_op(op)}


def calls_functions(op: Any) -> bool:
    """Whether an op is a functional loop, a condition or a function call."""
    return op.type in CALLERS


class new_ops:  # noqa: N801 - used as a function, in `with`
    """`with new_ops() as ops:` fills `ops`, when the block ends, with the ops made in it."""

    def __enter__(self) -> list[Any]:
        self._before = len(tf.get_default_graph().get_operations())
        self._ops: list[Any] = []
        return self._ops

    def __exit__(self, *error: object) -> None:
        self._ops += tf.get_default_graph().get_operations()[self._before :]


def uses_of(tensor: Any) -> Iterator[tuple[int, Any]]:
    """Yields (input index, op) for each use of a tensor, of any shape."""
    for op in dict.fromkeys(tensor.consumers()):
        for index, taken in enumerate(op.inputs):
            if taken is tensor:
                yield index, op
