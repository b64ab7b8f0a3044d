"""Layers as data."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import mobilenet
from nets.mobilenet.definitions import with_last_layer
from tests.nets.values import evaluate, images


def scaled(layer, multiplier):
    """Returns the keywords of a layer after its own function scaled them."""
    params = dict(layer.params)
    layer.multiplier_func(params, multiplier)
    return params


@pytest.mark.parametrize(
    ("multiplier", "keywords", "depth"),
    [
        pytest.param(0.5, {}, 24, id="next-multiple-of-8"),  # of 20
        pytest.param(0.5, {"divisible_by": 1}, 20, id="any-number"),
        pytest.param(0.25, {"divisible_by": 5, "min_depth": 15}, 15, id="least-number"),
        pytest.param(0, {}, 8, id="zero"),
        pytest.param(0, {"min_depth": 24}, 24, id="zero-with-a-least-number"),
        pytest.param(2.0, {}, 80, id="wider"),
    ],
)
def test_depth_multiplier(multiplier, keywords, depth):
    """The outputs are multiplied and rounded as the arg scope says; the definition stays."""
    layer = mobilenet.op(slim.conv2d, num_outputs=40, stride=2)
    with slim.arg_scope([mobilenet.depth_multiplier], **keywords):
        assert scaled(layer, multiplier) == {"num_outputs": depth, "stride": 2}
    assert layer.params == {"num_outputs": 40, "stride": 2}


def test_other_layers_and_roundings():
    """A pooling stays as it is; a rounding that cannot be done is named with its value."""
    assert scaled(mobilenet.op(slim.avg_pool2d, stride=1), 0.5) == {"stride": 1}
    for name in ("divisible_by", "min_depth"):
        message = f"^{name} must be a whole number of at least 1, got 0"
        with pytest.raises(ValueError, match=message):
            mobilenet.depth_multiplier({"num_outputs": 8}, 0.5, **{name: 0})


@pytest.mark.parametrize("keyword", ["multiplier_func", "multiplier_transform"])
def test_own_multiplier(keyword):
    """A layer may have a multiplier of its own, under either name."""

    def inverse(params, multiplier):
        params["num_outputs"] = int(params["num_outputs"] / multiplier)

    layer = mobilenet.op(slim.conv2d, num_outputs=16, kernel_size=(1, 1), **{keyword: inverse})
    assert "multiplier_transform" not in layer.params
    net, _ = mobilenet.mobilenet_base(
        images(1, 8, 8, 3), conv_defs={"spec": [layer]}, multiplier=0.1
    )
    assert net.shape.as_list() == [1, 8, 8, 160]


def test_with_last_layer():
    """The last layer gets the multiplier given, the others that of the network."""
    first, last = (mobilenet.op(slim.conv2d, num_outputs=depth) for depth in (40, 80))
    changed = with_last_layer({"spec": [first, last]}, multiplier=1.0)
    assert [scaled(layer, 0.2)["num_outputs"] for layer in changed["spec"]] == [8, 80]
    assert scaled(last, 0.2)["num_outputs"] == 16


def test_safe_arg_scope_leaves_out_none():
    """What is None stays as the scope around says."""
    with slim.arg_scope([slim.batch_norm], decay=0.5):
        with mobilenet.safe_arg_scope([slim.batch_norm], decay=None, is_training=False):
            keywords = slim.current_arg_scope()[slim.arg_scope_func_key(slim.batch_norm)]
            assert keywords == {"decay": 0.5, "is_training": False}
        nothing = mobilenet.safe_arg_scope([slim.batch_norm], decay=None)
    assert isinstance(nothing, mobilenet.NoOpScope)


def test_apply_activation():
    """The activation is that of the arg scope; without one nothing changes."""
    net = tf.constant([-1.0, 2.0])
    assert mobilenet.apply_activation(net) is net
    with slim.arg_scope([mobilenet.apply_activation], activation_fn=tf.nn.relu):
        activated = mobilenet.apply_activation(net, name="mine")
    assert activated.op.name == "mine"
    assert evaluate(activated).tolist() == [0.0, 2.0]
