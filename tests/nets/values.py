"""Runs the current graph on the reference weights."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.nets import graphs, reference


def evaluate(fetches: Any, feed: Any = None) -> Any:
    """Returns the values of `fetches` after giving every variable its reference value."""
    with graphs.session(tf.get_default_graph()) as sess:
        graphs.load_weights(sess)
        return sess.run(fetches, feed)


def evaluate_initial(fetches: Any) -> Any:
    """Returns the values of `fetches` with newly initialized variables."""
    with graphs.session(tf.get_default_graph()) as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches)


def images(*shape: int) -> Any:
    """Returns the reference input of this shape as a constant."""
    return tf.constant(reference.images(list(shape)))


def variable_names() -> list[str]:
    """Returns the names of all variables of the current graph, in order of creation."""
    return [v.op.name for v in tf.global_variables()]
