"""Inception-ResNet-v2: residual blocks, output stride, alignment, activation."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception_resnet_v2
from tests.nets import graphs, reference
from tests.nets.values import evaluate, variable_names


def base(images, **keywords):
    """Builds the network without its heads, under its arg scope, in inference mode."""
    with (
        slim.arg_scope(inception_resnet_v2.inception_resnet_v2_arg_scope()),
        slim.arg_scope([slim.batch_norm], is_training=False),
    ):
        return inception_resnet_v2.inception_resnet_v2_base(images, **keywords)


BLOCKS = {
    "Block35": inception_resnet_v2.block35,
    "Block17": inception_resnet_v2.block17,
    "Block8": inception_resnet_v2.block8,
}


@pytest.mark.parametrize("name", BLOCKS)
def test_block_adds_a_scaled_residual(name):
    """A block is activation(input + scale * residual), on one set of variables in its scope."""
    net = tf.constant(reference.images([2, 9, 7, 8]))
    residual = BLOCKS[name](net, activation_fn=None) - net
    names = variable_names()
    assert all(variable.startswith(f"{name}/") for variable in names)
    scaled = BLOCKS[name](net, 0.25, scope=name, reuse=True)
    assert variable_names() == names
    scaled, wanted = evaluate([scaled, tf.nn.relu(net + 0.25 * residual)])
    assert np.ptp(wanted) > 0
    np.testing.assert_allclose(scaled, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BLOCKS)
def test_block_for_fixed_point_numbers(name):
    """With a relu6 the residual is cut to -6 to 6 before it is added."""
    net = 100 * tf.constant(reference.images([2, 9, 7, 8]))
    residual = BLOCKS[name](net, activation_fn=None) - net
    block = BLOCKS[name](net, activation_fn=tf.nn.relu6, scope=name, reuse=True)
    wanted = tf.nn.relu6(net + tf.clip_by_value(residual, -6, 6))
    block, wanted, residual = evaluate([block, wanted, residual])
    assert np.abs(residual).max() > 6
    np.testing.assert_allclose(block, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_network_repeats_the_blocks():
    """Ten blocks by `slim.repeat` are those between `Mixed_5b` and `Mixed_6a`, whose last 320
    channels are their maxima.
    """
    images = tf.constant(reference.images([2, 75, 75, 3]))
    net, end_points = base(images, final_endpoint="Mixed_6a", scope="Net")
    names = variable_names()
    with (
        slim.arg_scope(inception_resnet_v2.inception_resnet_v2_arg_scope()),
        slim.arg_scope([slim.batch_norm], is_training=False),
        tf.variable_scope("Net", reuse=True),
    ):
        blocks = slim.repeat(end_points["Mixed_5b"], 10, inception_resnet_v2.block35, scale=0.17)
    assert variable_names() == names
    net, wanted = evaluate([net, tf.nn.max_pool2d(blocks, 3, 2, "VALID")])
    assert np.ptp(wanted) > 0
    np.testing.assert_array_equal(net[..., -320:], wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keywords", "sides"),
    [
        pytest.param({}, [147, 73, 35, 17], id="valid"),
        pytest.param({"align_feature_maps": True}, [150, 75, 38, 19], id="aligned"),
        pytest.param({"output_stride": 8}, [147, 73, 35, 33], id="stride-8"),
        pytest.param(
            {"output_stride": 8, "align_feature_maps": True},
            [150, 75, 38, 38],
            id="stride-8-aligned",
        ),
    ],
)
def test_output_stride_and_alignment(keywords, sides):
    """Aligned maps of 299 x 299 images are ceil(299 / stride) wide; stride 8 halves once less."""
    _, end_points = base(tf.zeros([2, 299, 299, 3]), final_endpoint="PreAuxLogits", **keywords)
    names = ["Conv2d_2a_3x3", "MaxPool_3a_3x3", "Mixed_5b", "PreAuxLogits"]
    assert [end_points[name].shape.as_list()[1] for name in names] == sides


@pytest.mark.slow
def test_stride_8_computes_what_stride_16_does_and_the_pixels_between():
    """Dilated blocks on a map that was not halved give, at every second pixel, the halved map."""
    images = tf.constant(reference.images([2, 91, 75, 3]))
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        coarse, _ = base(images, final_endpoint="PreAuxLogits", scope="Net")
        fine, _ = base(images, final_endpoint="PreAuxLogits", output_stride=8, scope="Net")
    coarse, fine = evaluate([coarse, fine])
    assert fine.shape[1] == 2 * coarse.shape[1] - 1
    assert reference.relative_difference(fine[:, ::2, ::2], coarse) < 1e-5


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"output_stride": 32}, "output_stride must be one of 8, 16, got 32"),
        (
            {"final_endpoint": "Mixed_6b"},
            "final_endpoint must be one of Conv2d_1a_3x3, .*, got 'Mixed_6b'",
        ),
        (
            {"output_stride": 8, "final_endpoint": "Mixed_7a"},
            "final_endpoint must be PreAuxLogits or one before it for output_stride 8, "
            "got 'Mixed_7a'",
        ),
        ({"output_stride": 8}, "final_endpoint must be PreAuxLogits .* got 'Conv2d_7b_1x1'"),
    ],
)
def test_base_rejects(keywords, message):
    """A stride or end point that there is not is named with those that there are."""
    with pytest.raises(ValueError, match=message):
        base(tf.zeros([2, 299, 299, 3]), **keywords)


@pytest.mark.slow
def test_activation_follows_each_residual_addition_but_the_last():
    """There are 10 + 20 + 9 activated blocks, and the linear one before the last convolution."""
    activated = []

    def activation(net):
        activated.append(net)
        return net

    images = tf.constant(reference.images([2, 75, 75, 3]))
    graphs.build(
        "inception_resnet_v2", images, 0, create_aux_logits=False, activation_fn=activation
    )
    assert [net.shape.as_list()[-1] for net in activated] == [320] * 10 + [1088] * 20 + [2080] * 9
    assert len(tf.trainable_variables("InceptionResnetV2/.*block.*/Conv2d_1x1/biases")) == 39
    assert len(tf.trainable_variables("InceptionResnetV2/Block8/Conv2d_1x1/biases")) == 1
