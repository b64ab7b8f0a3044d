"""The golden models, and others with random numbers, conditions and loops in loops."""

import tensorflow.compat.v1 as tf

from model_deploy import slim
from tests.goldens import GOLDENS, NUM_CLASSES, Golden, formula


def _dropout(features, labels):
    net = slim.fully_connected(features, 5, weights_initializer=formula, scope="hidden")
    net = slim.dropout(net, 0.5, scope="dropout")
    net = tf.nn.dropout(net, rate=0.25)
    logits = slim.fully_connected(net, NUM_CLASSES, weights_initializer=formula, scope="logits")
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    tf.summary.histogram("logits", logits)


def _condition(features, labels):
    weights = tf.get_variable("weights", [6, 1], initializer=formula)
    sums = tf.matmul(features, weights)
    positive = tf.reduce_sum(sums) > 0
    predictions = tf.cond(positive, lambda: tf.square(sums), lambda: tf.exp(sums) - sums)
    with tf.control_dependencies([tf.debugging.assert_all_finite(predictions, "not finite")]):
        tf.losses.mean_squared_error(tf.cast(labels, tf.float32)[:, tf.newaxis], predictions)
    tf.add_to_collection("mine", {"sums": sums, "ops": (positive.op, 3)})


def _nested_loops(features, labels):
    weights = tf.get_variable("weights", [6, 6], initializer=formula)

    def outer(i, state):
        def inner(j, state):
            return j + 1, tf.tanh(tf.matmul(state, weights))

        return i + 1, tf.while_loop(lambda j, _: j < 2, inner, (0, state))[1] + features

    _, state = tf.while_loop(lambda i, _: i < 2, outer, (0, features))
    state = tf.map_fn(lambda row: tf.reduce_sum(row * row), state)
    tf.losses.mean_squared_error(tf.cast(labels, tf.float32), state)


_MLP = GOLDENS["slim_mlp"]
_MORE = {
    name: Golden(name, _MLP.features, _MLP.labels, model_fn)
    for name, model_fn in (
        ("dropout", _dropout),
        ("condition", _condition),
        ("nested_loops", _nested_loops),
    )
}
ALL = GOLDENS | _MORE
