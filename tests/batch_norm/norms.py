"""Tiny models with batch norms of every kind, and what training them gives."""

import contextlib

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import deploy, graph_walk, slim
from tests.goldens import (
    GOLDENS,
    NUM_CLASSES,
    NUM_EXAMPLES,
    Golden,
    LogicalDevices,
    cpu_config,
    feed_clones,
    formula,
)

STEPS = 3
IMAGES = GOLDENS["convolution"].features
LABELS = GOLDENS["convolution"].labels


def _classify(net, labels):
    logits = slim.fully_connected(
        slim.flatten(net),
        NUM_CLASSES,
        activation_fn=None,
        weights_initializer=formula,
        scope="logits",
    )
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return logits


def _of_slim(features, labels):
    """Two layers, so that the moments of the second depend on those of the first."""
    with slim.arg_scope(
        [slim.conv2d],
        weights_initializer=formula,
        normalizer_fn=slim.batch_norm,
        normalizer_params={"decay": 0.9, "scale": True},
    ):
        net = slim.conv2d(features, 3, [3, 3], scope="conv_1")
        return _classify(slim.conv2d(net, 4, [3, 3], scope="conv_2"), labels)


def _not_fused(features, labels):
    net = slim.batch_norm(features, decay=0.9, scale=True, fused=False, scope="norm_1")
    net = slim.batch_norm(
        net, decay=0.9, fused=False, zero_debias_moving_mean=True, scope="norm_2"
    )
    return _classify(tf.nn.tanh(net), labels)


def _of_tf_keras(features, labels):
    from tf_keras.src.legacy_tf_layers import normalization

    net = features[:, 0, 0, :]
    net = normalization.batch_normalization(net, momentum=0.9, training=True, name="norm_1")
    net = tf.concat([net, tf.square(net)], axis=1)
    net = normalization.batch_normalization(net, momentum=0.9, training=True, name="norm_2")
    return _classify(net, labels)


def _unlike(features, labels):
    """A fused and a composed batch norm of unlike shapes, in two branches."""
    left = slim.batch_norm(features, decay=0.9, scope="left")
    right = slim.batch_norm(features[:, 0, 0, :] ** 2, decay=0.9, fused=False, scope="right")
    return _classify(tf.concat([slim.flatten(left), right], axis=1), labels)


MODELS = {
    "slim": Golden("slim", IMAGES, LABELS, _of_slim),
    "not_fused": Golden("not_fused", IMAGES, LABELS, _not_fused),
    "rank_2": GOLDENS["batch_norm"],
    "tf_keras": Golden("tf_keras", IMAGES, LABELS, _of_tf_keras),
    "branches": Golden("branches", IMAGES, LABELS, _unlike),
}


def adam():
    """Adam whose first steps are no mere signs of gradients, which may all but cancel."""
    return tf.train.AdamOptimizer(0.02, epsilon=1e-2)


class Run:
    """A model, trained.

    Attributes:
      model: what `deploy` returned.
      losses: of each step.
      values: of all global variables at the end, by name.
      gradients: those of the first step, by name of the variable; of SGD.
    """

    def __init__(self, golden, num_clones, *, model_fn=None, args=(), **options):
        make_optimizer = options.pop("make_optimizer", adam)
        config = LogicalDevices(
            num_clones=num_clones, sync_batch_norm=options.pop("sync_batch_norm", True), **options
        )
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            if model_fn is None:
                model_fn = feed_clones(golden, config.batches_per_step)
            self.model = deploy(config, model_fn, args, optimizer=make_optimizer())
            with tf.Session(config=cpu_config(num_clones)) as session:
                session.run(tf.global_variables_initializer())
                self.losses = [session.run(self.model.train_op) for _ in range(STEPS)]
                self.values = session.run({v.op.name: v for v in tf.global_variables()})


def assert_same(run, expected, tolerance=1e-5):
    """Losses and all variables agree, slots and moving averages among them."""
    np.testing.assert_allclose(run.losses, expected.losses, rtol=tolerance)
    assert run.values.keys() == expected.values.keys()
    assert len(expected.losses) == STEPS
    for name, value in expected.values.items():
        limit = tolerance * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(run.values[name], value, rtol=0, atol=limit, err_msg=name)
