"""Tiny models with batch norms of every kind; none has the same on parts as on a whole batch."""

import dataclasses
import functools

import keras
import tensorflow.compat.v1 as tf
from tf_keras.src.legacy_tf_layers import normalization

from model_deploy import graph_walk, slim
from tests.goldens import GOLDENS, Golden, classify, formula

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
        Golden("slim", _IMAGES, _LABELS, _of_slim, batch_law=False),
        dataclasses.replace(GOLDENS["batch_norm"], name="rank_2"),
        Golden("single_ops", _IMAGES, _LABELS, _of_single_ops, batch_law=False),
        Golden("tf_keras", _IMAGES, _LABELS, _of_tf_keras, batch_law=False),
        Golden("keras", _IMAGES, _LABELS, _of_keras, batch_law=False),
        Golden("branches", _IMAGES, _LABELS, _of_branches, batch_law=False),
    )
}
# As many channels as a batch norm needs to compute in 16 bits on a CPU.
WIDE = Golden("wide", _IMAGES, _LABELS, functools.partial(_of_slim, channels=(16, 32)))
