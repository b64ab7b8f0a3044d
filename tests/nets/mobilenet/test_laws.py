"""What holds for the convolutions of every MobileNet, as laws over their feature maps.

Images are a multiple of 32 plus one pixel high and wide: then SAME padding is symmetric for every
stride, and each feature map is a subsample of the denser one.
"""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import mobilenet_v1
from nets.mobilenet import mobilenet_v2, mobilenet_v3
from tests.nets import reference
from tests.nets.values import evaluate, images


def v1(inputs, final_endpoint=None, **keywords):
    """Builds the convolutions of MobileNet v1, a quarter as wide."""
    with slim.arg_scope(mobilenet_v1.mobilenet_v1_arg_scope(is_training=False)):
        return mobilenet_v1.mobilenet_v1_base(
            inputs,
            final_endpoint=final_endpoint or "Conv2d_13_pointwise",
            depth_multiplier=0.25,
            scope="MobilenetV1",
            **keywords,
        )


def v2(inputs, **keywords):
    """Builds the layers of MobileNet v2, about a third as wide."""
    return mobilenet_v2.mobilenet_base(inputs, 0.35, **keywords)


# Squeeze-and-excitation averages over the feature map, so a denser map has another average.
def v3(inputs, final_endpoint="layer_13", **keywords):
    """Builds MobileNet v3 small without squeeze-and-excitation, up to its pooling."""
    return mobilenet_v3.mobilenet_base(
        inputs,
        0.5,
        conv_defs=mobilenet_v3.V3_SMALL_MINIMALISTIC,
        final_endpoint=final_endpoint,
        **keywords,
    )


def edge_tpu(inputs, **keywords):
    """Builds the layers of MobileNet EdgeTPU, a quarter as wide."""
    return mobilenet_v3.mobilenet_base(
        inputs, 0.25, conv_defs=mobilenet_v3.V3_EDGETPU, scope="MobilenetEdgeTPU", **keywords
    )


@pytest.fixture(params=[v1, v2, v3, edge_tpu], ids=lambda build: build.__name__)
def build(request):
    """Builds the layers of one network: `build(inputs, **keywords)`."""
    return request.param


@pytest.mark.slow
def test_output_stride_and_explicit_padding(build):
    """Every pixel of the usual feature map is in the denser one, unchanged, and padding by the
    kernel alone changes nothing where SAME padding is symmetric.
    """
    inputs = images(1, 33, 33, 3)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        usual, _ = build(inputs)
        dense, _ = build(inputs, output_stride=8)
        explicit, _ = build(inputs, use_explicit_padding=True)
    assert dense.shape.as_list()[1:3] == [5, 5]
    usual, dense, explicit = evaluate([usual, dense, explicit])
    assert reference.relative_difference(dense[:, ::4, ::4], usual) < 1e-5
    assert reference.relative_difference(explicit, usual) < 1e-5


@pytest.mark.parametrize("explicit", [True, False])
def test_padding_and_the_size(build, explicit):
    """With explicit padding one more row and column changes no pixel far from them. Without, an
    even size is padded at the end only: other pixels.
    """
    inputs = images(1, 33, 33, 3)
    final_endpoint = {v1: "Conv2d_2_depthwise"}.get(build, "layer_3")
    keywords = {"use_explicit_padding": explicit, "final_endpoint": final_endpoint}
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        odd, _ = build(inputs, **keywords)
        even, _ = build(inputs[:, :32, :32], **keywords)
    odd, even = evaluate([odd, even])
    difference = reference.relative_difference(even[:, :4, :4], odd[:, :4, :4])
    assert difference < 1e-5 if explicit else difference > 0.1


@pytest.mark.slow
def test_final_endpoint_stops_there(build):
    """The network up to an end point has that output, and no later layer or variable."""
    inputs = images(1, 33, 33, 3)
    final_endpoint = {v1: "Conv2d_5_depthwise"}.get(build, "layer_5")
    net, end_points = build(inputs, final_endpoint=final_endpoint)
    few = {v.op.name for v in tf.global_variables()}
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        _, all_end_points = build(inputs)
    assert net is end_points[final_endpoint]
    layers = [key for key in all_end_points if "/" not in key]
    wanted = layers[: layers.index(final_endpoint) + 1]
    assert [key for key in end_points if "/" not in key] == wanted
    assert len(few) < len(tf.global_variables())
    short, long = evaluate([net, all_end_points[final_endpoint]])
    np.testing.assert_allclose(short, long, rtol=1e-5, atol=1e-5)


def test_bad_arguments(build):
    """A bad end point or output stride is named with the good ones."""
    inputs = images(1, 33, 33, 3)
    with pytest.raises(ValueError, match=r"^final_endpoint must be one of .*, got 'layer_99'"):
        build(inputs, final_endpoint="layer_99")
    message = r"^output_stride must be None or one of \[1, 2, 4, 8, 16, 32\].*, got 6"
    with pytest.raises(ValueError, match=message):
        build(inputs, output_stride=6)
