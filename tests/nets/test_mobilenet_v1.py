"""The keywords of MobileNet v1."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet_v1 import (
    Conv,
    DepthSepConv,
    mobilenet_v1,
    mobilenet_v1_arg_scope,
    mobilenet_v1_base,
)
from tests.nets import reference
from tests.nets.values import evaluate, images, variable_names

# Two layers: quick to build.
SMALL = {
    "num_classes": 10,
    "depth_multiplier": 0.25,
    "is_training": False,
    "conv_defs": [Conv([3, 3], stride=2, depth=32), DepthSepConv([5, 3], stride=2, depth=64)],
}


def test_own_conv_defs():
    """A network of other layers has these layers, and no end points but theirs."""
    _, end_points = mobilenet_v1(images(2, 16, 16, 3), **SMALL)
    assert [(key, value.shape.as_list()) for key, value in end_points.items()] == [
        ("Conv2d_0", [2, 8, 8, 8]),
        ("Conv2d_1_depthwise", [2, 4, 4, 8]),
        ("Conv2d_1_pointwise", [2, 4, 4, 16]),
        ("AvgPool_1a", [2, 1, 1, 16]),
        ("Logits", [2, 10]),
        ("Predictions", [2, 10]),
    ]
    assert variable_names()[1] == "MobilenetV1/Conv2d_0/biases"  # no arg scope, no normalization
    assert tf.global_variables()[2].shape.as_list() == [5, 3, 8, 1]


def test_min_depth():
    """No layer is thinner than `min_depth`."""
    mobilenet_v1(images(1, 16, 16, 3), **{**SMALL, "min_depth": 12})
    weights = [v for v in tf.global_variables() if v.op.name.endswith("/weights")]
    assert [v.shape.as_list()[-1] for v in weights] == [12, 16, 10]


def test_global_pool():
    """Up to 7 x 7 features the two poolings are one; the end point's name tells which. With height
    and width unknown until it runs, a global pool gives the same logits.
    """
    value = reference.images([1, 16, 24, 3])
    unknown = tf.placeholder_with_default(value, [None, None, None, 3])
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        local, local_end_points = mobilenet_v1(tf.constant(value), **SMALL)
        overall, end_points = mobilenet_v1(tf.constant(value), global_pool=True, **SMALL)
        later, _ = mobilenet_v1(unknown, global_pool=True, **SMALL)
    assert ("AvgPool_1a" in local_end_points, "AvgPool_1a" in end_points) == (True, False)
    assert end_points["global_pool"].shape.as_list() == [1, 1, 1, 16]
    assert later.shape.as_list() == [None, 10]
    local, overall, later = evaluate([local, overall, later])
    assert reference.relative_difference(overall, local) < 1e-5
    assert reference.relative_difference(later, local) < 1e-5


def test_larger_images_have_several_rows_of_logits():
    """Images of 36 pixels have 9 x 9 features, which 7 x 7 pooling of stride 2 makes 2 x 2."""
    inputs = images(1, 36, 36, 3)
    logits, _ = mobilenet_v1(inputs, spatial_squeeze=False, **SMALL)
    assert logits.shape.as_list() == [1, 2, 2, 10]
    with pytest.raises(ValueError, match=r"^spatial_squeeze needs .*, got shape \(1, 2, 2, 10\)"):
        mobilenet_v1(inputs, reuse=True, **SMALL)
    features, _ = mobilenet_v1(inputs, reuse=True, **{**SMALL, "num_classes": None})
    assert features.shape.as_list() == [1, 2, 2, 16]


def test_predictions_and_reuse():
    """Predictions are what `prediction_fn` makes of the logits; without one there are none. All
    variables are in `scope`, and a second network with `reuse` adds none.
    """
    inputs = images(1, 16, 16, 3)
    logits, end_points = mobilenet_v1(
        inputs,
        prediction_fn=lambda logits, scope: tf.identity(2 * logits, scope),
        scope="mine",
        **SMALL,
    )
    names = variable_names()
    assert all(name.startswith("mine/") for name in names)
    _, without = mobilenet_v1(inputs, prediction_fn=None, scope="mine", reuse=True, **SMALL)
    assert list(without)[-1] == "Logits"
    assert variable_names() == names
    logits, predictions = evaluate([logits, end_points["Predictions"]])
    np.testing.assert_allclose(predictions, 2 * logits, rtol=1e-6)


def build_base(**scope_keywords):
    """Builds two layers under the arg scope."""
    with slim.arg_scope(mobilenet_v1_arg_scope(**scope_keywords)):
        mobilenet_v1_base(
            images(1, 16, 16, 3),
            final_endpoint="Conv2d_1_pointwise",
            conv_defs=SMALL["conv_defs"],
            scope="MobilenetV1",
        )


@pytest.mark.parametrize("regularize_depthwise", [False, True])
def test_regularize_depthwise(regularize_depthwise):
    """Depthwise weights are regularized only if asked for."""
    build_base(regularize_depthwise=regularize_depthwise)
    names = [loss.op.name for loss in tf.losses.get_regularization_losses()]
    assert any("Conv2d_1_depthwise" in name for name in names) is regularize_depthwise
    assert len(names) == 2 + regularize_depthwise


def test_without_normalization():
    """With `normalizer_fn=None` the convolutions have biases."""
    build_base(normalizer_fn=None)
    kinds = {name.rpartition("/")[2] for name in variable_names()}
    assert kinds == {"weights", "depthwise_weights", "biases"}


@pytest.mark.parametrize(
    ("keywords", "updates"),
    [
        pytest.param({}, 6, id="training"),
        pytest.param({"is_training": False}, 0, id="inference"),
        pytest.param({"is_training": None}, 6, id="left-alone"),
        pytest.param({"batch_norm_updates_collections": "mine"}, 0, id="other-collection"),
    ],
)
def test_update_ops(keywords, updates):
    """Mean and variance of three normalizations are updated, in training, where asked for."""
    build_base(**keywords)
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == updates
    mine = len(tf.get_collection("mine"))
    assert mine == (6 if "batch_norm_updates_collections" in keywords else 0)


def test_initial_weights_have_the_deviation_asked_for():
    """Weights start from a normal distribution cut at two `stddev`, which has 0.88 of it."""
    build_base(stddev=0.5)
    weights = next(v for v in tf.global_variables() if "Conv2d_1_pointwise/weights" in v.name)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        weights = sess.run(weights)
    assert np.abs(weights).max() <= 1.0
    assert weights.std() == pytest.approx(0.88 * 0.5, rel=0.05)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"depth_multiplier": 0}, "depth_multiplier must .*, got 0"),
        ({"min_depth": 0}, "min_depth must .*, got 0"),
        (
            {"final_endpoint": "Conv2d_14"},
            "final_endpoint must be one of Conv2d_0, Conv2d_1_depthwise, .*, got 'Conv2d_14'",
        ),
    ],
)
def test_bad_arguments(keywords, message):
    """A bad depth is named, and an end point that the layers do not have."""
    with pytest.raises(ValueError, match=f"^{message}"):
        mobilenet_v1_base(images(1, 16, 16, 3), **keywords)
