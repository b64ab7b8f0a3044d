"""`Rewriter`: changes names, seeds and called functions in nodes of the first clone for a copy."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import randomness
from model_deploy.copying.twins import Twins
from model_deploy.op_types import READS_OF_RESOURCES

# TensorFlow's seeds have 31 bits.  The step is a prime far above the number of ops in a graph:
# seeds that nobody set are numbers of ops.
_SEED_RANGE = (1 << 31) - 1
_SEED_STEP = 100_000_007


class Rewriter:
    """Rewrites `NodeDef`s of the original clone into those of a copy.

    Args:
      scope: name scope of the original; ends with `/`.
      twins: maps ops, devices and functions of the original to the copy's.
    """

    def __init__(self, scope: str, twins: Twins) -> None:
        self._pattern = re.compile(rb"(?<![\w.>-])" + re.escape(scope.encode()))
        self._twins = twins
        self._scope = twins.scope.encode()

    def text(self, text: bytes) -> bytes:
        """Replaces the original's scope by the copy's wherever it occurs in a name."""
        return self._pattern.sub(self._scope, text)

    def _has_copy(self, name: str) -> bool:
        """Whether an op name is in the original's scope."""
        return self.text(name.encode()) != name.encode()

    def strings(self, attr: Any) -> None:
        """Rewrites the strings in an attribute, such as tags and names of loop frames."""
        kind = attr.WhichOneof("value")
        if kind == "s":
            attr.s = self.text(attr.s)
        elif kind == "list":
            attr.list.s[:] = [self.text(string) for string in attr.list.s]
        elif kind == "tensor":
            attr.tensor.string_val[:] = [self.text(string) for string in attr.tensor.string_val]

    def seeds(self, attrs: Any) -> None:
        """Gives a random op the copy's seeds; an op without seeds stays without."""
        if "value" in attrs:  # the seed constant made by `random_by_step`
            number = randomness.seed_of_copy(
                int(tf.make_ndarray(attrs["value"].tensor)), self._twins.index
            )
            attrs["value"].tensor.CopyFrom(tf.make_tensor_proto(number, tf.int64, []))
            return
        if attrs["seed"].i or attrs["seed2"].i:
            moved = (attrs["seed2"].i + self._twins.index * _SEED_STEP) % _SEED_RANGE
            attrs["seed2"].i = moved or _SEED_RANGE

    def calls(self, attr: Any) -> None:
        """Replaces the functions that an attribute names by their copies."""
        for call in called(attr):
            call.name = self._twins.functions.get(call.name, call.name)

    def function(self, definition: Any) -> Any:
        """Copies a function definition, with the copy's devices, seeds, strings and calls."""
        copy = type(definition)()
        copy.CopyFrom(definition)
        copy.signature.name = self._twins.functions[definition.signature.name]
        names = {node.name for node in copy.node_def}
        for node in copy.node_def:
            node.op = self._twins.functions.get(node.op, node.op)
            groups = colocated_with(node) - names
            is_tied = node.op in READS_OF_RESOURCES  # to a variable, which clones share
            if not is_tied and all(self._has_copy(group) for group in groups):
                node.device = self._twins.device_of(node.device)
            if has_seeds(node):
                self.seeds(node.attr)
            for attr in node.attr.values():
                self.strings(attr)
                self.calls(attr)
        return copy


class FunctionCopies:
    """Copies the functions that ops call, directly or through other functions.

    Args:
      ops: ops of one graph.
      scope: name scope of the original; ends with `/`.
    """

    def __init__(self, ops: Iterable[Any], scope: str) -> None:
        self._scope = scope
        self._definitions: dict[str, Any] = {}
        callers = [op for op in ops if any(map(called, op.node_def.attr.values()))]
        if not callers:
            return  # `as_graph_def` takes long
        library = callers[0].graph.as_graph_def().library.function
        known = {function.signature.name: function for function in library}
        waiting = [name for op in callers for name in _names_called([op.node_def])]
        while waiting:
            name = waiting.pop()
            if name in known and name not in self._definitions:
                self._definitions[name] = known[name]
                waiting += _names_called(known[name].node_def)

    def library(self, twins: Twins) -> Any:
        """Returns copies of the functions that `twins` lacks, and adds their names to `twins`."""
        new = [name for name in self._definitions if name not in twins.functions]
        twins.functions.update({name: f"{name}_copy_{twins.index}" for name in new})
        rewriter = Rewriter(self._scope, twins)
        copies = [rewriter.function(self._definitions[name]) for name in new]
        return tf.GraphDef().library.__class__(function=copies)


def called(attr: Any) -> list[Any]:
    """Returns the functions that an attribute names."""
    kind = attr.WhichOneof("value")
    if kind == "func":
        return [attr.func]
    return list(attr.list.func) if kind == "list" else []


def has_seeds(node: Any) -> bool:
    """Whether a node is a random op with seeds in its attributes, or a constant of such seeds."""
    if node.op == "Const":
        return bool(node.name.endswith(randomness.SEED_BY_STEP))
    return "seed" in node.attr and "seed2" in node.attr


def colocated_with(node: Any) -> set[str]:
    """Returns the names of the ops with which a node is colocated."""
    groups = node.attr["_class"].list.s if "_class" in node.attr else ()
    return {group.decode().removeprefix("loc:@") for group in groups}


def holds(attr: Any, text: bytes) -> bool:
    """Whether a string in an attribute contains `text`."""
    kind = attr.WhichOneof("value")
    if kind == "s":
        return text in attr.s
    if kind == "list":
        return any(text in string for string in attr.list.s)
    return kind == "tensor" and any(text in string for string in attr.tensor.string_val)


def _names_called(nodes: Iterable[Any]) -> Iterator[str]:
    """Yields the names of functions that nodes call, and the types of the nodes."""
    for node in nodes:
        yield node.op
        for attr in node.attr.values():
            yield from (call.name for call in called(attr))
