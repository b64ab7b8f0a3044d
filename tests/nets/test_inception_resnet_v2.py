"""Inception-ResNet-v2: residual blocks, output stride, alignment, activation."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import inception_resnet_v2
from tests.nets import few_blocks, reference
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
    """A block is activation(input + scale * residual), on one set of variables in its scope; with a
    relu6 the residual is cut to -6 to 6 before it is added.
    """
    net = 100 * tf.constant(reference.images([2, 9, 7, 8]))
    residual = BLOCKS[name](net, activation_fn=None) - net
    names = variable_names()
    assert all(variable.startswith(f"{name}/") for variable in names)
    scaled = BLOCKS[name](net, 0.25, scope=name, reuse=True)
    cut = BLOCKS[name](net, activation_fn=tf.nn.relu6, scope=name, reuse=True)
    assert variable_names() == names
    wanted = tf.nn.relu(net + 0.25 * residual)
    wanted_cut = tf.nn.relu6(net + tf.clip_by_value(residual, -6, 6))
    values = evaluate([residual, scaled, wanted, cut, wanted_cut])
    residual, scaled, wanted, cut, wanted_cut = values
    assert np.abs(residual).max() > 6
    np.testing.assert_allclose(scaled, wanted, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(cut, wanted_cut, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_stride_8_computes_what_stride_16_does_and_the_pixels_between(monkeypatch):
    """Dilated blocks on a map that was not halved give, at every second pixel, the halved map.

    Aligned maps are ceil(side / stride) wide; an activation follows each residual addition.
    """
    few_blocks.shorten(monkeypatch)  # to two of each
    images, activated = tf.constant(reference.images([1, 97, 65, 3])), []
    keywords = {"final_endpoint": "PreAuxLogits", "align_feature_maps": True, "scope": "Net"}

    def activation(net):
        activated.append(net.shape.as_list()[-1])
        return tf.nn.relu(net)

    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        coarse, end_points = base(images, **keywords)
        fine, _ = base(images, output_stride=8, activation_fn=activation, **keywords)
    names = ["Conv2d_2a_3x3", "MaxPool_3a_3x3", "Mixed_5b", "PreAuxLogits"]
    shapes = [end_points[name].shape.as_list()[1:3] for name in names]
    assert shapes == [[49, 33], [25, 17], [13, 9], [7, 5]]
    assert activated == [320] * 2 + [1088] * 2
    coarse, fine = evaluate([coarse, fine])
    assert fine.shape[1:3] == (13, 9)
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
