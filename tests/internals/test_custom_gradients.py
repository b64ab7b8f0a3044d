"""Graphs with custom gradients, which TensorFlow keeps."""

import gc
import weakref

import tensorflow.compat.v1 as tf

from model_deploy import internals


def _graph():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [2])
        tf.gradients(tf.nn.silu(x), x)
    return graph


def test_forget_custom_gradients():
    """A graph with a custom gradient goes once that is forgotten, and other graphs keep theirs."""
    first, second = _graph(), _graph()
    lost = weakref.ref(first)
    internals.forget_custom_gradients(first)
    del first
    gc.collect()
    assert lost() is None
    with second.as_default():
        [y] = [op.outputs[0] for op in second.get_operations() if op.type == "IdentityN"]
        x = second.get_tensor_by_name("Placeholder:0")
        assert tf.gradients(y, x) != [None]
    internals.forget_custom_gradients()
    lost = weakref.ref(second)
    del second, y, x
    gc.collect()
    assert lost() is None
