"""What holds for the convolutions of every MobileNet, as laws over their feature maps.

`test_mobilenet.py` has the laws of the blocks that MobileNet v2 is made of.

Images are a multiple of 32 plus one pixel high and wide: then SAME padding is symmetric for every
stride, and each feature map is a subsample of the denser one.
"""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import mobilenet_v1
from nets.mobilenet import mobilenet_v3
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


@pytest.fixture(params=[v1, v3, edge_tpu], ids=lambda build: build.__name__)
def build(request):
    """Builds the layers of one network: `build(inputs, **keywords)`."""
    return request.param


@pytest.mark.slow
def test_parts_output_stride_and_explicit_padding(build):
    """The network up to an end point has that output, and no later layer or variable.

    Every pixel of the usual feature map is in the denser one, unchanged, and padding by the kernel
    alone changes nothing where SAME padding is symmetric.
    """
    inputs = images(1, 33, 33, 3)
    final_endpoint = {v1: "Conv2d_5_depthwise"}.get(build, "layer_5")
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        short, end_points = build(inputs, final_endpoint=final_endpoint)
        few = len(tf.global_variables())
        usual, all_end_points = build(inputs)
        assert few < len(tf.global_variables())
        dense, _ = build(inputs, output_stride=8)
        explicit, _ = build(inputs, use_explicit_padding=True)
    assert short is end_points[final_endpoint]
    layers = [key for key in all_end_points if "/" not in key]
    wanted = layers[: layers.index(final_endpoint) + 1]
    assert [key for key in end_points if "/" not in key] == wanted
    assert dense.shape.as_list()[1:3] == [5, 5]
    values = evaluate([short, all_end_points[final_endpoint], usual, dense, explicit])
    short, long, usual, dense, explicit = values
    assert reference.relative_difference(short, long) < 1e-5
    assert reference.relative_difference(dense[:, ::4, ::4], usual) < 1e-5
    assert reference.relative_difference(explicit, usual) < 1e-5


def test_padding_and_the_size(build):
    """With explicit padding one more row and column changes no pixel far from them. Without, an
    even size is padded at the end only: other pixels.
    """
    inputs, nets = images(1, 33, 33, 3), []
    keywords = {"final_endpoint": {v1: "Conv2d_2_depthwise"}.get(build, "layer_3")}
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        for explicit in (True, False):
            keywords["use_explicit_padding"] = explicit
            nets += [build(inputs, **keywords)[0], build(inputs[:, :32, :32], **keywords)[0]]
    odd, even, odd_padded, even_padded = (net[:, :4, :4] for net in evaluate(nets))
    assert reference.relative_difference(even, odd) < 1e-5
    assert reference.relative_difference(even_padded, odd_padded) > 0.1


def test_bad_arguments(build):
    """A bad end point or output stride is named with the good ones."""
    inputs = images(1, 33, 33, 3)
    with pytest.raises(ValueError, match=r"^final_endpoint must be one of .*, got 'layer_99'"):
        build(inputs, final_endpoint="layer_99")
    message = r"^output_stride must be None or one of \[1, 2, 4, 8, 16, 32\].*, got 6"
    with pytest.raises(ValueError, match=message):
        build(inputs, output_stride=6)
