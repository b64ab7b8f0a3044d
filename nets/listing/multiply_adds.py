"""Counts the multiply-adds of a graph: convolutions and matrix products, also inside loops."""

import math
from collections.abc import Iterable
from typing import Any

import tensorflow.compat.v1 as tf

_CONVOLUTIONS = {"Conv2D", "Conv3D", "DepthwiseConv2dNative"}
_PRODUCTS = {"MatMul", "BatchMatMulV2"}


def multiply_adds(graph: tf.Graph) -> int:
    """Returns the number of multiplications whose results are summed, in one run of the graph.

    Layers, gates and classifiers consist of them; pooling, normalization and activations are
    not counted, as is usual in the papers.

    Raises:
      ValueError: if the shape of such an operation is unknown, or how often a loop runs, or if a
        loop is one of TensorFlow 1's control flow.
    """
    definition = graph.as_graph_def(add_shapes=True)
    bodies = {body.signature.name: _nodes(body) for body in definition.library.function}
    return _count(definition.node, bodies)


def _nodes(function: Any) -> list[Any]:
    """Returns the nodes of a function, its arguments among them."""
    arguments = [
        tf.NodeDef(name=argument.name, op="_Arg", attr=function.arg_attr[index].attr)
        for index, argument in enumerate(function.signature.input_arg)
    ]
    return [*arguments, *function.node_def]


def _count(nodes: Iterable[Any], bodies: dict[str, Any]) -> int:
    by_name = {node.name: node for node in nodes}
    return sum(_cost(node, by_name, bodies) for node in by_name.values())


def _cost(node: Any, nodes: dict[str, Any], bodies: dict[str, Any]) -> int:
    if node.op in _CONVOLUTIONS:
        kernel = _input_shape(node, 1, nodes)
        # [height, width, in, out] makes `out` channels, but depthwise `in * out`: each output is
        # a sum over all but the last axis, or over the height and width alone.
        summed = kernel[:2] if node.op.startswith("Depthwise") else kernel[:-1]
        return math.prod(summed) * math.prod(_shape(node))
    if node.op in _PRODUCTS:
        left = _input_shape(node, 0, nodes)
        transposed = node.attr["transpose_a" if node.op == "MatMul" else "adj_x"].b
        return left[-2 if transposed else -1] * math.prod(_shape(node))
    if node.op in {"While", "StatelessWhile"}:
        body = _count(bodies[node.attr["body"].func.name], bodies)
        return body and body * _iterations(node, nodes)
    if node.op == "Enter":
        raise ValueError(
            f"a loop must be made with tf.enable_control_flow_v2() to be counted, got {node.name}"
        )
    return 0


def _iterations(loop: Any, nodes: dict[str, Any]) -> int:
    limit = nodes[_producer(loop.input[1])]
    if limit.op != "Const":
        raise ValueError(f"a loop must run a known number of times, got {loop.name}")
    return int(tf.make_ndarray(limit.attr["value"].tensor))


def _producer(reference: str) -> str:
    return reference.lstrip("^").partition(":")[0]


def _input_shape(node: Any, index: int, nodes: dict[str, Any]) -> list[int]:
    return _shape(nodes[_producer(node.input[index])])


def _shape(node: Any) -> list[int]:
    shape = [dim.size for dim in node.attr["_output_shapes"].list.shape[0].dim]
    if not shape or min(shape) < 0:
        raise ValueError(f"{node.name} must have a known shape, got {shape}")
    return shape
