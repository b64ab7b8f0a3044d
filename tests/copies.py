"""What tests compare of a graph in which clones are called, and one in which they are copied."""

import re

import numpy as np
import tensorflow.compat.v1 as tf

# Python's view of loops and conditions of TensorFlow 1: it does not come with a copy.
CONTEXTS = (tf.GraphKeys.WHILE_CONTEXT, tf.GraphKeys.COND_CONTEXT)


def batches_of(golden, num_clones):
    """An iterator over the parts of a golden's examples, made into tensors when they are taken."""
    parts = zip(
        np.split(golden.features, num_clones), np.split(golden.labels, num_clones), strict=True
    )
    return ((tf.constant(features), tf.constant(labels)) for features, labels in parts)


def nodes(graph):
    """Per op: type, device, inputs, colocation and attributes but seeds.

    Functions are compared by what they hold, as each call makes new ones.
    """
    functions = {f.signature.name: f for f in graph.as_graph_def().library.function}
    return {op.name: _node(op, functions) for op in graph.get_operations()}


def _node(op, functions):
    attributes = {
        key: _attribute(value, functions)
        for key, value in op.node_def.attr.items()
        if key not in ("seed", "seed2")
    }
    return {
        "type": op.type,
        "device": op.device,
        "inputs": [tensor.name for tensor in op.inputs],
        "control inputs": {before.name for before in op.control_inputs},
        "outputs": [tensor.dtype for tensor in op.outputs],
        "attributes": attributes,
    }


def _attribute(value, functions):
    kind = value.WhichOneof("value")
    if kind == "func":
        return _function(value.func.name, functions)
    if kind == "list" and value.list.func:
        return [_function(func.name, functions) for func in value.list.func]
    return value.SerializeToString(deterministic=True)


def _function(name, functions):
    """What a function holds; the names of functions count the functions of a graph."""
    function = functions[name]
    held = [
        (
            node.name,
            node.op,
            node.device,
            [re.sub(r"(clone|part)_\d+", r"\1", name) for name in node.input],  # names of arguments
            {key: _attribute(value, functions) for key, value in node.attr.items()}
            | dict.fromkeys(("seed", "seed2")),
        )
        for node in function.node_def
    ]
    return held, [arg.type for arg in function.signature.output_arg]


def collections(graph):
    """Names of the items of each collection, in order."""
    return {
        key: [
            str(getattr(getattr(item, "op", item), "name", item))
            for item in tf.nest.flatten(graph.get_collection(key))
        ]
        for key in graph.get_all_collection_keys()
        if isinstance(key, str) and key not in CONTEXTS
    }
