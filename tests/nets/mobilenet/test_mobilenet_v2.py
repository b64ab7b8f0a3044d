"""The keywords of MobileNet v2."""

import copy

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import mobilenet_v2
from nets.mobilenet.conv_blocks import expanded_conv
from nets.mobilenet.mobilenet_v2 import V2_DEF, mobilenet, mobilenet_base, op, training_scope
from tests.nets import reference
from tests.nets.values import evaluate, images, variable_names

# Three layers: quick to build.
TINY = {
    **V2_DEF,
    "spec": [
        op(slim.conv2d, num_outputs=16, kernel_size=[3, 3], stride=2),
        op(expanded_conv, num_outputs=16),
        op(slim.conv2d, num_outputs=32, kernel_size=[1, 1]),
    ],
}
SMALL = {"num_classes": 10, "conv_defs": TINY}


@pytest.mark.parametrize(
    ("keywords", "widths"),
    [
        ({"depth_multiplier": 0.25, "min_depth": 12}, [12, 12, 12]),
        ({"depth_multiplier": 0.25, "min_depth": 1, "divisible_by": 2}, [4, 4, 8]),
        ({"depth_multiplier": 0.5, "finegrain_classification_mode": True}, [8, 8, 32]),
        ({"depth_multiplier": 2.0, "finegrain_classification_mode": True}, [32, 32, 64]),
    ],
)
def test_widths(keywords, widths):
    """Layers are as wide as the keywords say."""
    _, end_points = mobilenet(images(1, 16, 16, 3), **SMALL, **keywords)
    assert [end_points[f"layer_{number}"].shape[3] for number in (1, 2, 3)] == widths


@pytest.mark.parametrize(("activation_fn", "affine"), [(tf.identity, True), (None, False)])
def test_linear_activation_makes_the_network_affine(activation_fn, affine):
    """f(a) + f(b) = f(a + b) + f(0) if the only nonlinearity is replaced: it is so everywhere."""
    first = reference.images([1, 32, 32, 3])
    second = first[:, ::-1]
    batch = tf.concat([first, second, first + second, 0 * first], axis=0)
    logits, _ = mobilenet(batch, activation_fn=activation_fn, **SMALL)
    left, right, both, none = evaluate(logits)
    difference = reference.relative_difference(left + right, both + none)
    assert (difference < 1e-4) if affine else (difference > 1e-2)


def test_changed_definition():
    """A copy of the definition, changed, is another network; the defaults are its own."""
    changed = copy.deepcopy(V2_DEF)
    changed["spec"] = changed["spec"][:2]
    changed["spec"][0].params["num_outputs"] = 48
    changed["defaults"][expanded_conv,]["residual"] = False
    _, end_points = mobilenet(images(1, 16, 16, 5), 10, conv_defs=changed)
    assert end_points["layer_1"].shape.as_list() == [1, 8, 8, 48]
    assert V2_DEF["spec"][0].params["num_outputs"] == 32
    assert V2_DEF["defaults"][expanded_conv,]["residual"]


def test_group_normalization():
    """The base with group normalization has the layers of the other, and no moving averages."""
    _, end_points = mobilenet_v2.mobilenet_base_group_norm(
        images(1, 32, 32, 3), 0.35, groups=4, final_endpoint="layer_3"
    )
    names = variable_names()
    assert "MobilenetV2/expanded_conv_1/depthwise/GroupNorm/gamma" in names
    assert not [name for name in names if "BatchNorm" in name]
    assert end_points["layer_3"].shape.as_list() == [1, 8, 8, 8]
    scale = tf.get_default_graph().get_tensor_by_name("MobilenetV2/Conv/GroupNorm/Reshape:0")
    assert scale.shape.as_list() == [1, 1, 1, 4, 4]  # four groups of the 16 channels
    assert (slim.group_norm,) not in mobilenet_v2.V2_DEF_GROUP_NORM["defaults"]


@pytest.mark.parametrize(
    ("scope_mode", "keywords", "training"),
    [
        pytest.param(True, {}, True, id="scope"),
        pytest.param(False, {}, False, id="scope-inference"),
        pytest.param(True, {"is_training": False}, False, id="own-wins"),
        pytest.param(True, {"is_training": None}, True, id="left-to-scope"),
        pytest.param(None, {}, True, id="left-to-normalization"),
    ],
)
def test_training_mode(scope_mode, keywords, training):
    """A network trains if it is told so itself, or else by `training_scope`."""
    with slim.arg_scope(training_scope(is_training=scope_mode)):
        mobilenet(images(1, 16, 16, 3), **SMALL, **keywords)
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == (10 if training else 0)
    drops = [op for op in tf.get_default_graph().get_operations() if op.type == "RandomUniform"]
    assert len(drops) == training


def test_training_scope_settings():
    """Keep probability, decay and L2 factor of the arg scope are those of the graph."""
    with slim.arg_scope(training_scope(dropout_keep_prob=0.25, bn_decay=0.5, weight_decay=0.125)):
        mobilenet(images(2, 16, 16, 3), **SMALL)
    graph = tf.get_default_graph()
    with graph.as_default():
        loss = tf.losses.get_regularization_losses()[0]
        weights = tf.global_variables()[0]
        batch_mean = tf.reduce_mean(
            graph.get_tensor_by_name("MobilenetV2/Conv/Conv2D:0"), [0, 1, 2]
        )
        updates = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        before = tf.constant(reference.weights("MobilenetV2/Conv/BatchNorm/moving_mean", [16]))
    loss, weights, wanted = evaluate([loss, weights, (before + batch_mean) / 2])
    assert loss == pytest.approx(0.125 * (weights**2).sum() / 2, rel=1e-5)
    with tf.control_dependencies([updates]):
        moving = tf.identity(next(v for v in tf.global_variables() if "moving_mean" in v.name))
    assert reference.relative_difference(evaluate(moving), wanted) < 1e-4


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"depth_multiplier": -1}, ValueError, "^depth_multiplier must .*, got -1"),
        ({"multiplier": 0.5}, ValueError, "^multiplier must be given as depth_"),
        ({"min_depth": 0}, ValueError, "^min_depth must .*, got 0"),
        ({"divisible_by": 0}, ValueError, "^divisible_by must .*, got 0"),
        ({"global_pool": True}, TypeError, "global_pool"),  # which nobody takes
    ],
)
def test_bad_arguments(keywords, error, message):
    """A bad argument is named with the value received, and nothing is built."""
    inputs = images(1, 16, 16, 3)
    with pytest.raises(error, match=message):
        mobilenet(inputs, **SMALL, **keywords)
    assert tf.global_variables() == []


def test_reuse_and_parts():
    """A second network with `reuse` takes the variables of the first, and without a prediction
    function has no predictions; the base is the last layer, without pooling and logits; with
    `final_endpoint` the logits come from that layer.
    """
    inputs = images(1, 16, 16, 3)
    first, _ = mobilenet(inputs, **SMALL)
    names = variable_names()
    second, end_points = mobilenet(inputs, reuse=True, prediction_fn=None, **SMALL)
    assert list(end_points)[-1] == "Logits"
    net, end_points = mobilenet(inputs, reuse=True, base_only=True, **SMALL)
    assert list(end_points)[-1] == "layer_2/output"
    with tf.variable_scope("", reuse=True):
        base, _ = mobilenet_base(inputs, conv_defs=TINY)
    assert variable_names() == names
    first, second, net, base = evaluate([first, second, net, base])
    assert (first == second).all()
    assert (net == base).all()
    with tf.variable_scope("other"):
        _, end_points = mobilenet(inputs, final_endpoint="layer_2", **SMALL)
    assert "layer_3" not in end_points
    assert end_points["global_pool"].shape.as_list() == [1, 1, 1, 16]
