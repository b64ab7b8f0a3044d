"""Models whose clones spread two stages over several devices."""

import tensorflow.compat.v1 as tf

from model_deploy import current_clone, slim
from tests.goldens import GOLDENS, NUM_CLASSES, VOCABULARY, Golden, formula


def _embedding_and_layer(features, labels, stage):
    """Sparse gradients in the first stage, dense ones in the second."""
    with stage(0):
        table = tf.get_variable("table", [VOCABULARY, 4], initializer=formula)
        words = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
        net = tf.tanh(words, name="first")
    with stage(1):
        logits = slim.fully_connected(
            net,
            NUM_CLASSES,
            None,
            weights_initializer=formula,
            weights_regularizer=slim.l2_regularizer(0.1),
            scope="logits",
        )
        tf.losses.sparse_softmax_cross_entropy(labels, logits)


def _norm_and_loop(features, labels, stage):
    """Batch norm's update ops in the first stage, a loop in the second."""
    with stage(0):
        net = slim.batch_norm(features, decay=0.9, is_training=True, scope="norm")
        net = tf.identity(net, name="first")
    with stage(1):
        weights = tf.get_variable("weights", [3, 3], initializer=formula)

        def body(i, state):
            return i + 1, tf.tanh(tf.matmul(state, weights))

        _, state = tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), net))
        predictions = tf.reduce_sum(state, axis=1, keepdims=True)
        tf.losses.mean_squared_error(labels, predictions)


def _staged(build):
    """Makes `model_fn` of a model, on as many devices as the clones of a configuration have."""

    def prepare(config):
        def stage(index):
            last = config.devices_per_clone - 1
            return tf.device(config.stage_device(current_clone(), min(index, last)))

        return lambda features, labels: build(features, labels, stage)

    return prepare


_WORDS, _NORM = GOLDENS["embedding"], GOLDENS["batch_norm"]
MODELS = {
    golden.name: golden
    for golden in (
        Golden(
            "embedding", _WORDS.features, _WORDS.labels, None, prepare=_staged(_embedding_and_layer)
        ),
        Golden(
            "loop",
            _NORM.features,
            _NORM.labels,
            None,
            batch_law=False,
            prepare=_staged(_norm_and_loop),
        ),
    )
}
