"""Copies parts of a graph, with `tf.graph_util.import_graph_def`.

Three things that the import cannot do are done on the imported ops, with the methods that
TensorFlow's own control flow uses: colocation with ops outside of the part, which the import
rejects; control inputs from outside, which its `input_map` takes from ops with outputs only; and
the outputs that a loop gets when its gradient is built.
"""

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.copying import rewriting
from model_deploy.copying.rewriting import FunctionCopies, Rewriter
from model_deploy.copying.twins import Twins

# Suffixes of the types of summary ops, which stay on the CPU.
_SUMMARY_OPS = ("Summary", "SummaryV2")


class Prototype:
    """Ops of a graph, prepared to be copied any number of times.

    Args:
      ops: the ops, in the order in which they were made.
      scope: name scope of the original; ends with `/`.
    """

    def __init__(self, ops: Sequence[Any], scope: str) -> None:
        self.ops = list(ops)
        self.scope = scope
        self._names = {op.name for op in ops}
        self._nodes = tf.GraphDef()
        self._groups: dict[str, list[str]] = {}
        self._branching: dict[str, Any] = {}
        self._strings: list[tuple[int, str]] = []
        self._calls: list[tuple[int, str]] = []
        self._seeds: list[int] = []
        self._inputs: list[list[tuple[str, str, str]]] = []
        self._outside: dict[str, Any] = {}
        for i, op in enumerate(self.ops):
            self._add(i, op)
        self._functions = FunctionCopies([self.ops[i] for i, _ in self._calls], scope)

    def _add(self, i: int, op: Any) -> None:
        """Adds the node of the `i`-th op, and notes what has to be rewritten in copies."""
        node = self._nodes.node.add()
        node.CopyFrom(op.node_def)
        if graph_walk.calls_functions(op):
            self._branching[op.name] = op.node_def
        if "_class" in node.attr:
            self._groups[op.name] = sorted(rewriting.colocated_with(node))
            del node.attr["_class"]
        if rewriting.has_seeds(node):
            self._seeds.append(i)
        inputs = [_parts_of_input(name) for name in node.input]
        self._inputs.append([each for each in inputs if each[1] in self._names or not each[0]])
        self._outside.update({t.name: t for t in op.inputs if t.op.name not in self._names})
        for key, attr in node.attr.items():
            if rewriting.holds(attr, self.scope.encode()):
                self._strings.append((i, key))
            if rewriting.called(attr):
                self._calls.append((i, key))

    def stamp(self, twins: Twins) -> None:
        """Adds a copy of the ops to their graph, and notes it in `twins`.

        Devices, colocation, strings that begin with the scope (names of loop frames, tags of
        summaries), seeds and functions become the copy's.  Inputs from outside of the ops are
        replaced if `twins` has replacements, else shared.
        """
        if not self.ops:
            return
        graph = self.ops[0].graph
        rewriter = Rewriter(self.scope, twins)
        for op in self.ops:
            twins.ops[op.name] = self._name_of_copy(op, rewriter)
        library = self._functions.library(twins)
        nodes = tf.GraphDef(versions=graph.graph_def_versions, library=library)
        nodes.node.extend(self._nodes.node)
        outside = {name: twins.tensor(tensor) for name, tensor in self._outside.items()}
        for op, node, inputs in zip(self.ops, nodes.node, self._inputs, strict=True):
            node.name = twins.ops[op.name]
            node.device = ""  # set later, which is faster than in the import
            del node.input[:]
            node.input.extend(
                [
                    f"{control}{twins.ops[name] if name in self._names else name}{port}"
                    for control, name, port in inputs
                ]
            )
        self._rewrite_attributes(nodes, rewriter)
        _import(nodes, outside)
        self._place(twins)

    def _name_of_copy(self, op: Any, rewriter: Rewriter) -> str:
        """Returns the op's name in the copy's scope; outside of the scope a unique name."""
        if op.name.startswith(self.scope):
            return rewriter.text(op.name.encode()).decode()
        with tf.name_scope(None):
            unique: str = op.graph.unique_name(op.name)
        return unique

    def _stays_in_place(self, op: Any, twins: Twins) -> bool:
        """Whether an op keeps its device: a summary, or an op colocated with a shared op."""
        groups = self._groups.get(op.name, ())
        return op.type.endswith(_SUMMARY_OPS) or any(group not in twins.ops for group in groups)

    def _rewrite_attributes(self, nodes: Any, rewriter: Rewriter) -> None:
        for i, key in self._strings:
            rewriter.strings(nodes.node[i].attr[key])
        for i, key in self._calls:
            rewriter.calls(nodes.node[i].attr[key])
        for i in self._seeds:
            rewriter.seeds(nodes.node[i].attr)

    def _place(self, twins: Twins) -> None:
        """Sets devices and colocation of the copied ops, and their control inputs from outside."""
        for op in self.ops:
            twin = twins.op(op)
            if op.device:
                stays = self._stays_in_place(op, twins)
                internals.set_device(twin, op.device if stays else twins.device_of(op.device))
            waits = [other for other in op.control_inputs if other.name not in self._names]
            if waits:
                internals.add_control_inputs(twin, [twins.op(other) for other in waits])
            if op.name in self._groups:
                groups = [twins.ops.get(group, group) for group in self._groups[op.name]]
                names = [f"loc:@{group}".encode() for group in groups]
                value = tf.AttrValue(list=tf.AttrValue.ListValue(s=names))
                internals.set_attribute(twin, "_class", value)

    def extended_ops(self) -> list[tuple[Any, Any]]:
        """Returns loops and conditions that have since got more outputs, each with its old node."""
        pairs = [(op, self._branching[op.name]) for op in self.ops if op.name in self._branching]
        return [(op, node) for op, node in pairs if op.node_def != node]


def stamp_gradients(forward: Prototype, ops: Sequence[Any], copies: Sequence[Twins]) -> None:
    """Copies the ops of the original's gradient for copies of the original.

    The gradient of a loop adds to the loop outputs, which collect values for the gradient, and
    inputs, which are the initial values of these outputs.

    Args:
      forward: the ops of the model, which have been copied already.
      ops: the ops of the gradient, in the order in which they were made.
      copies: the copies of the model.
    """
    left_over = _left_by_shape_cache(ops)
    ops = [op for op in ops if op not in left_over]
    steps = []
    extended = forward.extended_ops()
    functions = FunctionCopies([op for op, _ in extended], forward.scope)
    for op, node in extended:
        num_inputs = sum(not name.startswith("^") for name in node.input)
        needed = graph_walk.ancestors([tensor.op for tensor in op.inputs[num_inputs:]])
        first = Prototype([each for each in ops if each in needed], forward.scope)
        ops = [each for each in ops if each not in needed]
        steps.append((first, op, node))
    rest = Prototype(ops, forward.scope)
    for twins in copies:
        if extended:
            library = functions.library(twins)
            _import(
                tf.GraphDef(versions=extended[0][0].graph.graph_def_versions, library=library), {}
            )
        for first, op, node in steps:
            first.stamp(twins)
            _extend(op, node, twins, Rewriter(forward.scope, twins))
        rest.stamp(twins)


def _import(nodes: Any, outside: dict[str, Any]) -> None:
    # Outside of the caller's devices and control dependencies: the nodes have their own.
    with _garbage_kept(), tf.device(None), tf.control_dependencies(None):
        tf.graph_util.import_graph_def(nodes, input_map=outside, name="")


@contextlib.contextmanager
def _garbage_kept() -> Iterator[None]:
    """Stops Python's garbage collector, which takes a fifth of the time of an import."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _left_by_shape_cache(ops: Sequence[Any]) -> set[Any]:
    """Returns the ops that a gradient of a mean or sum leaves behind at the first use of a shape.

    TensorFlow evaluates them at once and caches the values by graph; later gradients lack these
    ops.
    """
    unused = [op for op in ops if op.type == "FloorDiv" and not op.outputs[0].consumers()]
    left: set[Any] = set()
    for op in unused:
        needed = graph_walk.ancestors([op])
        if {each.type for each in needed} <= {"Const", "Maximum", "FloorDiv"}:
            left |= needed.intersection(ops)
    return left


def _extend(op: Any, node: Any, twins: Twins, rewriter: Rewriter) -> None:
    """Adds to the copy of `op` the inputs and outputs that `op` got since it was `node`."""
    twin = twins.op(op)
    for key, value in op.node_def.attr.items():
        if key != "_class" and (key not in node.attr or node.attr[key] != value):
            rewriter.calls(value)
            internals.set_attribute(twin, key, value)
    new_inputs = op.inputs[len(twin.inputs) :]
    if new_inputs:
        internals.add_loop_inputs(twin, [twins.tensor(tensor) for tensor in new_inputs])
    internals.add_outputs(twin, op.outputs[len(twin.outputs) :])


def _parts_of_input(name: str) -> tuple[str, str, str]:
    """Splits the name of a node's input into `^` or '', the op, and `:<output>` or ''."""
    control = "^" if name.startswith("^") else ""
    op_name, colon, port = name.removeprefix("^").partition(":")
    return control, op_name, colon + port
