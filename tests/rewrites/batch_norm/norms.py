"""Tiny models with batch norms of every kind, and what training them gives."""

import dataclasses
import functools

import keras
import numpy as np
import tensorflow.compat.v1 as tf
from tf_keras.src.legacy_tf_layers import normalization

from model_deploy import deploy, graph_walk, slim
from model_deploy.all_reduce import session_config
from model_deploy.hooks import session_hooks
from tests.copies import batches_of
from tests.goldens import (
    GOLDENS,
    Golden,
    LogicalDevices,
    classify,
    cpu_config,
    feed_clones,
    formula,
)

STEPS = 3
_IMAGES = GOLDENS["convolution"].features
_LABELS = GOLDENS["convolution"].labels


def _of_slim(features, labels, channels=(3, 4)):
    """Two layers: the moments of the second depend on those of the first."""
    with slim.arg_scope(
        [slim.conv2d],
        weights_initializer=formula,
        normalizer_fn=slim.batch_norm,
        normalizer_params={"decay": 0.9, "scale": True},
    ):
        net = slim.conv2d(features, channels[0], [3, 3], scope="conv_1")
        return classify(slim.conv2d(net, channels[1], [3, 3], scope="conv_2"), labels)


def _of_single_ops(features, labels):
    net = slim.batch_norm(features, decay=0.9, scale=True, fused=False, scope="norm_1")
    collections = [tf.GraphKeys.UPDATE_OPS]  # any but the default, for TF-Slim's own code
    net = slim.batch_norm(
        net, decay=0.9, fused=False, updates_collections=collections, scope="norm_2"
    )
    return classify(tf.nn.tanh(net), labels)


def _of_tf_keras(features, labels):
    """The layers that `tf.compat.v1.layers` had: of rank 2, and of rank 3 with the first axis."""
    norm = normalization.batch_normalization
    net = norm(features[:, 0, 0, :], momentum=0.9, training=True, name="norm_1")
    net = tf.stack([net, tf.square(net)], axis=2)
    return classify(norm(net, axis=1, momentum=0.9, training=True, name="norm_2"), labels)


def _of_keras(features, labels):
    """Layers of Keras 3, which one dict keeps for all clones of a graph."""
    store = tf.get_collection_ref(("tests", "keras"))
    if not store:
        with tf.device("/device:CPU:0"), tf.name_scope(None):
            store += [keras.layers.BatchNormalization(momentum=0.9, name=f"n{i}") for i in (1, 2)]
            store[0].build((None, 4, 4, 2))
            store[1].build((None, 4))
    with graph_walk.new_ops() as ops:
        net = store[0](features, training=True)[:, 0, 0, :]
        net = store[1](tf.concat([net, net**2], axis=1), training=True)
    for op in ops:  # the moving averages
        if op.type == "AssignVariableOp":
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, op)
    return classify(net, labels)


def _of_branches(features, labels):
    """A fused batch norm and one of single ops, of unlike shapes; none waits for the other."""
    left = slim.batch_norm(features, decay=0.9, scope="left")
    right = slim.batch_norm(features[:, 0, 0, :] ** 2, decay=0.9, fused=False, scope="right")
    return classify(tf.concat([slim.flatten(left), right], axis=1), labels)


MODELS = {
    golden.name: golden
    for golden in (
        Golden("slim", _IMAGES, _LABELS, _of_slim),
        dataclasses.replace(GOLDENS["batch_norm"], name="rank_2"),
        Golden("single_ops", _IMAGES, _LABELS, _of_single_ops),
        Golden("tf_keras", _IMAGES, _LABELS, _of_tf_keras),
        Golden("keras", _IMAGES, _LABELS, _of_keras),
        Golden("branches", _IMAGES, _LABELS, _of_branches),
    )
}
# As many channels as a batch norm needs to compute in 16 bits on a CPU.
WIDE = Golden("wide", _IMAGES, _LABELS, functools.partial(_of_slim, channels=(16, 32)))
# All-reduce gives each clone variables of its own, which Keras 3 does not let it do.
WITH_OWN_VARIABLES = [name for name in MODELS if name != "keras"]


def adam():
    """Adam whose first steps are no mere signs of gradients, which may all but cancel."""
    return tf.train.AdamOptimizer(0.02, epsilon=1e-2)


class Run:
    """A model of one replica.

    Args:
      golden: the model.
      num_clones: how many clones it has.
      make_optimizer: makes the optimizer.
      options: for `DeploymentConfig`.

    Attributes:
      graph: holds it.
      model: what `deploy` returned.
      losses: of each step.
      values: of all global variables at the end, by name.
    """

    def __init__(self, golden, num_clones, make_optimizer=adam, **options):
        self.config = LogicalDevices(num_clones=num_clones, **{"sync_batch_norm": True, **options})
        self.losses = []
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.set_random_seed(1)
            self.model = deploy(self.config, *self._model_fn(golden), optimizer=make_optimizer())

    def _model_fn(self, golden):
        own = self.config.batches_per_step
        if self.config.copy_clones:
            return (lambda batches: golden.model_fn(*next(batches))), [batches_of(golden, own)]
        parts = [
            np.split(each, self.config.num_replicas)[self.config.replica_id]
            for each in (golden.features, golden.labels)
        ]
        replica = dataclasses.replace(golden, features=parts[0], labels=parts[1])
        return feed_clones(replica, own), ()

    def __call__(self, target=""):
        """Trains; returns itself."""
        proto = session_config(self.config, cpu_config(self.config.num_clones))
        proto.isolate_session_state = True  # servers keep variables of earlier sessions
        with self.graph.as_default(), tf.Session(target, config=proto) as session:
            session.run([tf.global_variables_initializer()])
            session.run([tf.local_variables_initializer()])
            for hook in session_hooks():
                hook.after_create_session(session, None)
            self.losses += [session.run(self.model.train_op) for _ in range(STEPS)]
            self.values = session.run({v.op.name: v for v in tf.global_variables()})
            if self.config.all_reduce:
                assert session.run(self.model.copies_difference) == 0
        return self


def assert_same(run, expected, tolerance=1e-5):
    """Losses and all variables agree, slots and moving averages among them."""
    assert len(expected.losses) == STEPS
    np.testing.assert_allclose(run.losses, expected.losses, rtol=tolerance)
    assert run.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        limit = tolerance * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(run.values[name], value, rtol=0, atol=limit, err_msg=name)
