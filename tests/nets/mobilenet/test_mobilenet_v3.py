"""The keywords of MobileNet v3."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import mobilenet_v3
from nets.mobilenet.mobilenet_v3 import (
    V3_LARGE,
    V3_SMALL,
    hard_swish,
    mbv3_fused,
    mbv3_op_se,
    mobilenet,
    op,
    reduce_to_1x1,
)
from tests.nets import reference
from tests.nets.values import evaluate, images, variable_names

# Four layers: quick to build.
TINY = {
    **V3_SMALL,
    "spec": [
        op(slim.conv2d, num_outputs=16, kernel_size=(3, 3), stride=2, activation_fn=hard_swish),
        mbv3_op_se(ef=2, n=16, k=5, s=2),
        op(reduce_to_1x1, stride=1),
        op(slim.conv2d, num_outputs=32, kernel_size=(1, 1), normalizer_fn=None),
    ],
}
SMALL = {"num_classes": 10, "conv_defs": TINY}


def test_hard_swish():
    """Nothing passes below -3, everything above 3, and x (x + 3) / 6 in between."""
    values = [-4.0, -3.0, -1.5, 0.0, 1.5, 3.0, 5.0]
    expected = [0.0, 0.0, -0.375, 0.0, 1.125, 3.0, 5.0]
    np.testing.assert_allclose(evaluate(hard_swish(tf.constant(values))), expected, atol=1e-6)


def test_own_conv_defs():
    """A network of other layers has these layers; a pooling leaves one pixel."""
    _, end_points = mobilenet(images(2, 16, 24, 3), **SMALL)
    assert [(key, value.shape.as_list()) for key, value in end_points.items()] == [
        ("layer_1", [2, 8, 12, 16]),
        ("layer_2", [2, 4, 6, 16]),
        ("layer_3", [2, 1, 1, 16]),
        ("layer_4", [2, 1, 1, 32]),
        ("layer_2/expansion_output", [2, 8, 12, 32]),
        ("layer_2/depthwise_output", [2, 4, 6, 32]),
        ("layer_2/output", [2, 4, 6, 16]),
        ("global_pool", [2, 1, 1, 32]),
        ("Logits", [2, 10]),
        ("Predictions", [2, 10]),
    ]
    assert "MobilenetV3/expanded_conv/squeeze_excite/Conv_1/biases" in variable_names()
    assert "MobilenetV3/Conv_1/biases" in variable_names()


SIZES = {
    "small": (V3_SMALL, mobilenet_v3.V3_SMALL_DETECTION, 48),
    "large": (V3_LARGE, mobilenet_v3.V3_LARGE_DETECTION, 80),
}


@pytest.mark.parametrize(("conv_defs", "thinner", "width"), SIZES.values())
def test_variants_for_detection(conv_defs, thinner, width):
    """In the variant for detection, from the last stride to the last convolution before the
    pooling, all is half as wide.
    """
    pairs = zip(conv_defs["spec"], thinner["spec"], strict=True)
    changed = [(a.params, b.params) for a, b in pairs if a.params != b.params]
    assert [after["num_outputs"] for _, after in changed] == [*3 * [width], 6 * width]
    assert [before["num_outputs"] for before, _ in changed] == [*3 * [2 * width], 12 * width]
    assert changed[0][0]["stride"] == 2


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param([2, 9, 9, 4], [2, 1, 1, 4], id="square"),
        pytest.param([2, 7, 9, 4], [2, 1, 3, 4], id="not-square"),
        pytest.param([2, 4, 6, 4], [2, 1, 1, 4], id="smaller"),
    ],
)
def test_reduce_to_1x1(shape, expected):
    """A square map becomes one pixel, another one is averaged over windows of 7 x 7 at most."""
    net = images(*shape)
    pooled = reduce_to_1x1(net, stride=1)
    assert pooled.shape.as_list() == expected
    before, after = evaluate([net, pooled])
    window = before[:, :, : shape[2] - expected[2] + 1]
    np.testing.assert_allclose(after[:, 0, 0], window.mean(axis=(1, 2)), rtol=1e-4, atol=1e-6)


def test_stride_without_a_convolution_to_take_it():
    """A fused block with nothing but the projection cannot have a stride."""
    with pytest.raises(ValueError, match=r"^s \(stride\) must be 1 in a fused .* to 16, got 2"):
        mbv3_fused(ef=1, n=16, k=3, s=2)


def test_fused_block_with_a_convolution_of_its_own():
    """A full convolution given by the caller, as in TF-Slim, is the block's own one."""
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        ours = mbv3_fused(ef=4, n=16, k=3, s=2)
        own = ours._replace(
            params={
                **ours.params,
                "expansion_fn": functools.partial(slim.conv2d, kernel_size=3, stride=2),
            }
        )
        nets = [
            mobilenet(images(1, 16, 16, 3), conv_defs={"spec": [layer]}, base_only=True)[0]
            for layer in (ours, own)
        ]
    first, second = evaluate(nets)
    assert first.shape == (1, 8, 8, 16)
    np.testing.assert_array_equal(first, second)


def test_logits_do_not_depend_on_what_is_known_of_the_size():
    """With height and width unknown until it runs, the logits are the same."""
    value = reference.images([1, 40, 56, 3])
    unknown = tf.placeholder_with_default(value, [None, None, None, 3])
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        known, _ = mobilenet(tf.constant(value), **SMALL)
        later, _ = mobilenet(unknown, **SMALL)
    known, later = evaluate([known, later])
    assert reference.relative_difference(later, known) < 1e-5


def test_group_normalization_everywhere():
    """With `use_groupnorm` no batch normalization is left, and training updates nothing; groups of
    unequal size are refused.
    """
    _, end_points = mobilenet(images(1, 32, 32, 3), use_groupnorm=True, is_training=True, **SMALL)
    names = variable_names()
    assert not [name for name in names if "BatchNorm" in name or "moving" in name]
    assert len([name for name in names if "GroupNorm/gamma" in name]) == 4
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    assert end_points["Logits"].shape.as_list() == [1, 10]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="5"):
        mobilenet(images(1, 32, 32, 3), use_groupnorm=True, groups=5, **SMALL)


@pytest.mark.parametrize(("finegrain", "width"), [(False, 16), (True, 32)])
def test_keywords_of_the_arg_scope(finegrain, width):
    """`slim.arg_scope` over the network sets its keywords: half as wide, the last layer keeps its
    width only if asked to.
    """
    keywords = {"depth_multiplier": 0.5, "finegrain_classification_mode": finegrain}
    with slim.arg_scope([mobilenet], **keywords):
        _, end_points = mobilenet(images(1, 16, 16, 3), **SMALL)
    assert [end_points[f"layer_{number}"].shape[3] for number in (1, 2, 4)] == [8, 8, width]


def test_default_is_large():
    """Without `conv_defs` it is the large network, whose second layer has no stride."""
    _, end_points = mobilenet(images(1, 32, 32, 3), final_endpoint="layer_2")
    assert end_points["layer_2"].shape.as_list() == [1, 16, 16, 16]
