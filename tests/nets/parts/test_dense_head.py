"""AlexNet, OverFeat and VGG on images larger than they were designed for."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import nets_factory
from tests.nets import graphs

# Larger images by one step of the network's stride, in width.
LARGER = {
    "alexnet_v2": [1, 224, 224 + 32, 3],
    "overfeat": [1, 231, 231 + 32, 3],
    "vgg_a": [1, 224, 224 + 32, 3],
}
pytestmark = pytest.mark.parametrize("name", LARGER)


def test_logits_for_each_position(name):
    """Without squeezing, a larger image has logits for each position of the dense layers; squeezing
    them fails with what to do about it.
    """
    logits, end_points = graphs.build(name, tf.zeros(LARGER[name]), spatial_squeeze=False)
    assert logits.shape.as_list() == [1, 1, 2, 10]
    assert end_points[f"{name}/fc8"] is logits
    assert logits.op.name == f"{name}/fc8/BiasAdd"
    assert "global_pool" not in end_points
    message = r"^spatial_squeeze needs logits of 1 x 1 pixel, got shape \(1, 1, 2, 10\)"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        graphs.build(name, tf.zeros(LARGER[name]))


def test_global_pool_averages_positions(name):
    """With `global_pool` the features of a larger image are those of its positions, averaged.

    Height and width may be unknown until the graph runs.
    """
    features, end_points = graphs.build(name, tf.zeros(LARGER[name]), None, global_pool=True)
    assert features.shape[1:3] == [1, 1]
    assert features is end_points["global_pool"]
    assert end_points[f"{name}/fc7"].shape[1:3] == [1, 2]
    with tf.Graph().as_default():
        images = tf.placeholder(tf.float32, [None, None, None, 3])
        later, _ = graphs.build(name, images, None, global_pool=True)
    assert later.shape.as_list() == [None, 1, 1, 4096]


def test_networks_without_a_scope(name):
    """Networks without a scope get one each."""
    images = tf.zeros([1, *LARGER[name][1:2] * 2, 2])
    results = [graphs.build(name, images, scope=None)[0].op.name for _ in range(2)]
    assert results == [f"{name}/fc8/squeezed", f"{name}_1/fc8/squeezed"]


def test_arg_scope_of_other_layers(name):
    """The arg scope is for layers that a program adds, too: dense ones, convolutions, poolings."""
    net = tf.zeros([1, 5, 5, 2])
    with (
        slim.arg_scope([slim.conv2d], padding="VALID"),
        slim.arg_scope(nets_factory.arg_scopes_map[name](weight_decay=0.5)),
    ):
        dense = slim.fully_connected(slim.flatten(net), 3)
        assert slim.conv2d(net, 3, [3, 3]).shape.as_list() == [1, 5, 5, 3]
        assert slim.max_pool2d(net, [2, 2]).shape.as_list() == [1, 2, 2, 2]
    assert dense.op.type == "Relu"
    assert len(tf.losses.get_regularization_losses()) == 2
