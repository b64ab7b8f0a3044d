"""The parts of ResNets by themselves: against arithmetic, and one made of another."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import resnet_utils, resnet_v1, resnet_v2
from tests.nets import reference
from tests.nets.values import evaluate, images

VERSIONS = {1: resnet_v1, 2: resnet_v2}
both_versions = pytest.mark.parametrize("version", VERSIONS)


def small_blocks(version):
    """Returns three thin blocks of two units, with the strides 2, 2 and 1."""
    block = getattr(VERSIONS[version], f"resnet_v{version}_block")
    return [block(f"block{n}", 2**n, 2, 1 if n == 3 else 2) for n in (1, 2, 3)]


def arg_scope(**keywords):
    """Returns the arg scope of ResNets, in evaluation."""
    with (
        slim.arg_scope(resnet_utils.resnet_arg_scope(**keywords)),
        slim.arg_scope([slim.batch_norm], is_training=False) as scope,
    ):
        return scope


@pytest.mark.parametrize("height", [4, 5])
@pytest.mark.parametrize(("stride", "rate"), [(1, 1), (1, 2), (2, 1), (3, 1)])
def test_conv2d_same(height, stride, rate):
    """A strided convolution is the dense one subsampled, whether sizes are even or odd."""
    net = images(2, height, 7, 3)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        strided = resnet_utils.conv2d_same(net, 4, 3, stride, rate=rate, scope="Conv")
        dense = slim.conv2d(net, 4, 3, rate=rate, scope="Conv")
    strided, dense = evaluate([strided, dense])
    np.testing.assert_allclose(strided, dense[:, ::stride, ::stride], rtol=1e-4, atol=1e-6)


def unit_by_hand(image, weights, depth, bounded):
    """Returns what a unit of ResNet v1 without normalization makes of one pixel, `[channels]`.

    The middle of the 3x3 kernel meets the pixel, the rest of it meets padding.
    """

    def layer(value, scope):
        kernel = weights[f"{scope}/weights"]
        middle = kernel.shape[0] // 2
        return value @ kernel[middle, middle] + weights[f"{scope}/biases"]

    top = 6 if bounded else np.inf
    shortcut = image
    if len(image) != depth:
        shortcut = layer(image, "shortcut")
        shortcut = np.clip(shortcut, 0, 6) if bounded else shortcut
    residual = np.maximum(layer(image, "conv1"), 0)
    residual = layer(np.maximum(layer(residual, "conv2"), 0), "conv3")
    return np.clip(shortcut + np.clip(residual, -top, top), 0, top)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("depth", [3, 5])
def test_bottleneck_by_hand(depth, bounded):
    """A unit adds three convolutions to its input or to its projection, within 6 if wanted."""
    image = 20 * reference.images([1, 1, 1, 3])
    with (
        slim.arg_scope(arg_scope(use_batch_norm=False)),
        slim.arg_scope([resnet_v1.bottleneck], use_bounded_activations=bounded),
    ):
        output = resnet_v1.bottleneck(tf.constant(image), depth, 2, 1, scope="unit")
    weights = {
        v.op.name.removeprefix("unit/"): reference.weights(v.op.name, v.shape.as_list())
        for v in tf.global_variables()
    }
    expected = unit_by_hand(image[0, 0, 0], weights, depth, bounded)
    [actual] = evaluate([output])
    np.testing.assert_allclose(actual[0, 0, 0], expected, rtol=1e-5)
    assert (expected.max() > 6) is not bounded


@both_versions
def test_block(version):
    """A block has a scope, a unit, and the arguments of each, with the stride in the last."""
    module = VERSIONS[version]
    block = getattr(module, f"resnet_v{version}_block")("name", base_depth=2, num_units=3, stride=2)
    unit = {"depth": 8, "depth_bottleneck": 2, "stride": 1}
    assert isinstance(block, resnet_utils.Block)
    assert block == ("name", module.bottleneck, [unit, unit, {**unit, "stride": 2}])


def test_units_of_any_kind():
    """A unit is any function that takes `rate`; without a stride of its own it has none."""
    rates = []

    def unit(net, rate, stride=1, add=0):
        rates.append(rate)
        return resnet_utils.subsample(net, stride) + add

    blocks = [
        resnet_utils.Block("a", unit, [{"stride": 2, "add": 1}, {"add": 2}]),
        resnet_utils.Block("b", unit, [{"stride": 3}, {}]),
    ]
    net = images(1, 8, 8, 1)
    output = resnet_utils.stack_blocks_dense(net, blocks, output_stride=2)
    assert rates == [1, 1, 1, 3]
    net, output = evaluate([net, output])
    np.testing.assert_allclose(output, net[:, ::2, ::2] + 3, rtol=1e-6)


@both_versions
@pytest.mark.parametrize("is_training", [False, True])
def test_scopes(version, is_training):
    """With `is_training=None` normalization does what the arg scope says; networks without a scope
    get one each.
    """
    network = getattr(VERSIONS[version], f"resnet_v{version}")
    with (
        slim.arg_scope(resnet_utils.resnet_arg_scope()),
        slim.arg_scope([slim.batch_norm], is_training=is_training),
    ):
        for _ in range(2):
            network(images(1, 32, 32, 3), small_blocks(version)[:1], is_training=None)
    assert bool(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) is is_training
    scopes = {v.op.name.partition("/")[0] for v in tf.global_variables()}
    assert scopes == {f"resnet_v{version}", f"resnet_v{version}_1"}


def test_no_op_scope():
    """The context that changes nothing leaves arg scopes as they are, and lets errors through."""
    with slim.arg_scope([slim.conv2d], stride=2), resnet_v1.NoOpScope() as entered:
        assert entered is None
        assert slim.conv2d(images(1, 4, 4, 3), 1, 1).shape.as_list() == [1, 2, 2, 1]
    with pytest.raises(KeyError), resnet_v1.NoOpScope():
        raise KeyError
