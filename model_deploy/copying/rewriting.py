"""`Rewriter`: what nodes say of the first clone, as it is for a copy; functions as well."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import randomness
from model_deploy.copying.twins import Twins

# TensorFlow's seeds have 31 bits.  The step is a prime far above the number of ops in a
# graph, which is where the seeds come from that nobody chose.
_SEED_RANGE = (1 << 31) - 1
_SEED_STEP = 100_000_007


class Rewriter:
    """Changes nodes of the original into those of a copy.

    Args:
      scope: name scope of the original; ends with `/`.
      twins: the copy.
    """

    def __init__(self, scope: str, twins: Twins) -> None:
        self._pattern = re.compile(rb"(?<![\w.>-])" + re.escape(scope.encode()))
        self._twins = twins
        self._scope = twins.scope.encode()

    def text(self, text: bytes) -> bytes:
        """`text` with the scope of the copy, wherever a name has it: gradients repeat it inside."""
        return self._pattern.sub(self._scope, text)

    def _has_copy(self, name: str) -> bool:
        """Whether the op of that name is one of the original."""
        return self.text(name.encode()) != name.encode()

    def strings(self, attr: Any) -> None:
        """Changes the strings in an attribute, such as tags and names of frames."""
        kind = attr.WhichOneof("value")
        if kind == "s":
            attr.s = self.text(attr.s)
        elif kind == "list":
            attr.list.s[:] = [self.text(string) for string in attr.list.s]
        elif kind == "tensor":
            attr.tensor.string_val[:] = [self.text(string) for string in attr.tensor.string_val]

    def seeds(self, attrs: Any) -> None:
        """Gives a random op other numbers; those that differ in each session stay so."""
        if "value" in attrs:  # the constant of an op whose numbers depend on the step
            number = randomness.seed_of_copy(
                int(tf.make_ndarray(attrs["value"].tensor)), self._twins.index
            )
            attrs["value"].tensor.CopyFrom(tf.make_tensor_proto(number, tf.int64, []))
            return
        if attrs["seed"].i or attrs["seed2"].i:
            moved = (attrs["seed2"].i + self._twins.index * _SEED_STEP) % _SEED_RANGE
            attrs["seed2"].i = moved or _SEED_RANGE

    def calls(self, attr: Any) -> None:
        """Changes the functions that an attribute names to their copies."""
        for call in called(attr):
            call.name = self._twins.functions.get(call.name, call.name)

    def function(self, definition: Any) -> Any:
        """The copy of a function: its devices, seeds, strings and calls are the copy's."""
        copy = type(definition)()
        copy.CopyFrom(definition)
        copy.signature.name = self._twins.functions[definition.signature.name]
        names = {node.name for node in copy.node_def}
        for node in copy.node_def:
            node.op = self._twins.functions.get(node.op, node.op)
            groups = colocated_with(node) - names
            if all(self._has_copy(group) for group in groups):  # else it is tied to a variable
                node.device = self._twins.device_of(node.device)
            if has_seeds(node):
                self.seeds(node.attr)
            for attr in node.attr.values():
                self.strings(attr)
                self.calls(attr)
        return copy


class FunctionCopies:
    """The functions that ops call, directly or not, ready to be copied.

    Args:
      ops: ops of one graph.
      scope: name scope of the original; ends with `/`.
    """

    def __init__(self, ops: Iterable[Any], scope: str) -> None:
        self._scope = scope
        self._definitions: dict[str, Any] = {}
        callers = [op for op in ops if any(map(called, op.node_def.attr.values()))]
        if not callers:
            return  # without a look at the whole graph, which takes its time
        library = callers[0].graph.as_graph_def().library.function
        known = {function.signature.name: function for function in library}
        waiting = [name for op in callers for name in _names_called([op.node_def])]
        while waiting:
            name = waiting.pop()
            if name in known and name not in self._definitions:
                self._definitions[name] = known[name]
                waiting += _names_called(known[name].node_def)

    def library(self, twins: Twins) -> Any:
        """Copies of the functions that `twins` does not have yet, and has then."""
        new = [name for name in self._definitions if name not in twins.functions]
        twins.functions.update({name: f"{name}_copy_{twins.index}" for name in new})
        rewriter = Rewriter(self._scope, twins)
        copies = [rewriter.function(self._definitions[name]) for name in new]
        return tf.GraphDef().library.__class__(function=copies)


def called(attr: Any) -> list[Any]:
    """The functions that an attribute names."""
    kind = attr.WhichOneof("value")
    if kind == "func":
        return [attr.func]
    return list(attr.list.func) if kind == "list" else []


def has_seeds(node: Any) -> bool:
    """Whether a node draws random numbers from seeds in its attributes, or is such a seed."""
    if node.op == "Const":
        return bool(node.name.endswith(randomness.SEED_BY_STEP))
    return "seed" in node.attr and "seed2" in node.attr


def colocated_with(node: Any) -> set[str]:
    """Names of the ops on whose device a node is to be."""
    groups = node.attr["_class"].list.s if "_class" in node.attr else ()
    return {group.decode().removeprefix("loc:@") for group in groups}


def holds(attr: Any, text: bytes) -> bool:
    """Whether a string in an attribute holds `text`."""
    kind = attr.WhichOneof("value")
    if kind == "s":
        return text in attr.s
    if kind == "list":
        return any(text in string for string in attr.list.s)
    return kind == "tensor" and any(text in string for string in attr.tensor.string_val)


def _names_called(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        yield node.op
        for attr in node.attr.values():
            yield from (call.name for call in called(attr))
