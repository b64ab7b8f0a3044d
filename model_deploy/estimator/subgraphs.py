"""Parts of a graph that are built once more, on other inputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def between(
    ends: Sequence[Any], is_start: Callable[[Any], bool], stop: Sequence[Any] = ()
) -> list[Any]:
    """The ops that tensors need and that need a start themselves, in the order of their making.

    Args:
      ends: tensors of any shapes.
      is_start: whether an op is a start; starts are among what is returned.
      stop: tensors whose ops are starts, too, and are not returned.
    """
    stopped = {tensor.ref() for tensor in stop}
    ops: list[Any] = []
    depends: dict[Any, bool] = {}

    def visit(tensor: Any) -> bool:
        return tensor.ref() in stopped or depends.get(tensor.op, False)

    found, waiting = set(), [end.op for end in ends if end.ref() not in stopped]
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            waiting += [t.op for t in op.inputs if t.ref() not in stopped]
    graph = ends[0].graph if ends else tf.get_default_graph()
    for op in graph.get_operations():
        if op in found:
            depends[op] = is_start(op) or any(visit(tensor) for tensor in op.inputs)
            if depends[op]:
                ops.append(op)
    return ops


def copied(ends: Sequence[Any], ops: Sequence[Any], replaced: Mapping[Any, Any]) -> list[Any]:
    """Tensors once more, of copies of ops that are made here, see `copies_of`.

    Args:
      ends: tensors of any shapes.
      ops: what to copy, in the order in which they were made.
      replaced: for some tensors, by `tensor.ref()`, what the copies take in their place.

    Returns:
      For each of `ends` its copy, of the same shape; what it is replaced by; or itself.
    """
    made = copies_of(ops, replaced)
    return [replaced.get(end.ref(), copy_of(end, made)) for end in ends]


def copy_of(tensor: Any, made: Mapping[Any, Any]) -> Any:
    """The copy of a tensor, of the same shape, if its op has one; else the tensor."""
    if tensor.op not in made:
        return tensor
    copy = made[tensor.op].outputs[tensor.value_index]
    copy.set_shape(tensor.shape)
    return copy


def copies_of(ops: Sequence[Any], replaced: Mapping[Any, Any]) -> dict[Any, Any]:
    """For each op its copy, which is made here, on the device of here.

    Args:
      ops: what to copy, in the order in which they were made.
      replaced: for some tensors, by `tensor.ref()`, what the copies take in their place.
    """
    if not ops:
        return {}
    names = {op.name: f"op_{i}" for i, op in enumerate(ops)}
    outside: dict[str, Any] = {}
    graph = ops[0].graph
    nodes = tf.GraphDef(versions=graph.graph_def_versions)
    for op in ops:
        node = nodes.node.add()
        node.CopyFrom(op.node_def)
        node.name, node.device = names[op.name], ""
        node.attr.pop("_class", None)
        del node.input[:]
        for tensor in op.inputs:
            if tensor.ref() not in replaced and tensor.op.name in names:
                node.input.append(f"{names[tensor.op.name]}:{tensor.value_index}")
            else:
                name = f"in_{len(outside)}"
                outside[f"{name}:0"] = replaced.get(tensor.ref(), tensor)
                node.input.append(f"{name}:0")
        node.input.extend(
            f"^{names[each.name]}" for each in op.control_inputs if each.name in names
        )
    wanted = list(names.values())
    made = tf.graph_util.import_graph_def(nodes, outside, wanted, name="again")
    return dict(zip(ops, made, strict=True))
