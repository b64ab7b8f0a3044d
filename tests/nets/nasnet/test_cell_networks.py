"""What NASNet and PNASNet share: end points, drop path schedule, bad input."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet import nasnet, nasnet_utils, pnasnet
from nets.nasnet.cell_config import CellNetworkConfig
from tests.nets import graphs, reference

# Network -> side of an image that its smallest training graph takes.
SIDES = {"nasnet_cifar": 12, "nasnet_mobile": 67, "pnasnet_mobile": 67}


def small_config(**settings):
    """Returns a config of three narrow cells."""
    defaults = {"num_cells": 3, "num_conv_filters": 8, "total_training_steps": 100}
    return CellNetworkConfig(**{**defaults, **settings})


def build(name, num_classes=10, settings=None, side=None, **keywords):
    """Builds a network of three narrow cells on the reference input."""
    side = side or SIDES[name]
    images = tf.constant(reference.images([2, side, side, 3]))
    config = small_config(**(settings or {}))
    return graphs.build(name, images, num_classes, config=config, **keywords)


def evaluate(tensors, feeds=({},)):
    """Returns the values of tensors for each feed, with freshly initialized variables."""
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(tensors, feed) for feed in feeds]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_mobile", "pnasnet_mobile"])
@pytest.mark.parametrize("final_endpoint", ["Stem", "Cell_1", "global_pool", "Logits"])
def test_final_endpoint(name, final_endpoint):
    """Building stops at the final end point, and nothing after it is made."""
    with tf.Graph().as_default():
        _, everything = build(name, is_training=True)
        all_variables = [v.op.name for v in tf.global_variables()]
    net, end_points = build(name, is_training=True, final_endpoint=final_endpoint)
    keys = list(everything)
    assert list(end_points) == keys[: keys.index(final_endpoint) + 1]
    assert net is end_points[final_endpoint]
    assert net.shape == everything[final_endpoint].shape
    built = [v.op.name for v in tf.global_variables()]
    assert built == all_variables[: len(built)]
    assert (built == all_variables) == (final_endpoint == "Logits")
    assert tf.get_variable_scope().name == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_mobile", "pnasnet_mobile"])
def test_final_endpoint_predictions(name):
    """The last end point of all may be asked for by name: probabilities."""
    predictions, _ = build(name, final_endpoint="Predictions")
    np.testing.assert_allclose(evaluate(predictions)[0].sum(axis=1), [1, 1], rtol=1e-5)


@pytest.mark.parametrize("name", ["nasnet_mobile", "pnasnet_mobile"])
@pytest.mark.parametrize(
    ("final_endpoint", "num_classes"),
    [
        pytest.param("AuxLogits", 10, id="auxiliary"),
        pytest.param("Cell_3", 10, id="cell-too-many"),
        pytest.param("Logits", 0, id="logits-without-classes"),
    ],
)
def test_final_endpoint_rejects(name, final_endpoint, num_classes):
    """A final end point that this network does not come to is named."""
    message = f"final_endpoint must be one of Stem, Cell_0, .*, got '{final_endpoint}'"
    with pytest.raises(ValueError, match=message):
        build(name, num_classes, final_endpoint=final_endpoint)


@pytest.mark.parametrize("name", SIDES)
def test_images_of_unknown_size(name):
    """The wiring depends on height and width, so that they have to be known."""
    images = tf.placeholder(tf.float32, [None, None, 96, 3])
    message = r"images must have a known height and width, got shape \(None, None, 96, 3\)"
    with pytest.raises(ValueError, match=message):
        graphs.build(name, images)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_batch_of_unknown_size(name):
    """The batch may be of any size."""
    side = SIDES[name]
    images = tf.placeholder(tf.float32, [None, side, side, 3])
    settings = small_config(drop_path_keep_prob=0.5)
    logits, _ = graphs.build(name, images, is_training=True, config=settings)
    feeds = [{images: reference.images([batch, side, side, 3])} for batch in (1, 3)]
    assert [len(value) for value in evaluate(logits, feeds)] == [1, 3]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_too_small_for_the_auxiliary_head(name):
    """Only a graph with the auxiliary head needs more than the smallest image."""
    side = {"nasnet_cifar": 8}.get(name, 66)
    training = functools.partial(build, name, side=side, is_training=True)
    message = f"images must be at least {side + 1} pixels high and wide, got shape"
    with pytest.raises(ValueError, match=message):
        training()
    for fits in (
        functools.partial(training, settings={"use_aux_head": False}),
        functools.partial(training, num_classes=0),
        functools.partial(build, name, side=side),
    ):
        with tf.Graph().as_default():
            _, end_points = fits()
            assert "AuxLogits" not in end_points


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_mobile", "pnasnet_mobile"])
def test_too_small_for_an_auxiliary_head_that_is_not_reached(name):
    """A training graph that ends before the auxiliary head takes smaller images."""
    net, _ = build(name, side=40, is_training=True, final_endpoint="Cell_0")
    assert net.shape.as_list()[:3] == [2, 5, 5]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_images_that_are_not_square(name):
    """Height and width are halved on their own, odd ones upwards."""
    images = tf.constant(reference.images([2, 75, 100, 3]))
    net, end_points = graphs.build(name, images, 0, config=small_config())
    stem = [75, 100] if name == "nasnet_cifar" else [10, 13]  # (37, 49) after the convolution
    assert end_points["Stem"].shape.as_list()[1:3] == stem
    last = end_points["Cell_2"].shape.as_list()
    assert last[1:3] == [-(-side // 4) for side in stem]
    assert net.shape.as_list() == [2, last[3]]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_drop_path_follows_the_global_step(name):
    """At step 0 nothing is dropped; at the last step two runs of one batch differ."""
    step = tf.train.get_or_create_global_step()
    logits, _ = build(name, settings={"drop_path_keep_prob": 0.5}, is_training=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(sess.run(logits), sess.run(logits))
        sess.run(step.assign(100))
        assert not np.allclose(sess.run(logits), sess.run(logits))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cells"), [("nasnet_cifar", 5), ("nasnet_mobile", 7), ("pnasnet_mobile", 5)]
)
def test_drop_path_schedule(name, cells, monkeypatch):
    """Cell `i` of `n` keeps `1 - i / n * (1 - p)` at the end of the schedule, and from then on."""
    keeps = []

    def record(net, keep_prob):
        keeps.append(keep_prob)
        return net

    monkeypatch.setattr(nasnet_utils, "drop_path", record)
    step = tf.train.get_or_create_global_step()
    build(name, settings={"drop_path_keep_prob": 0.5}, is_training=True)
    for value, share in ((0, 0.0), (50, 0.5), (100, 1.0), (10_000, 1.0)):
        with tf.Session() as sess:
            sess.run(step.assign(value))
            actual = sess.run(keeps)
        assert actual == sorted(actual, reverse=True)
        expected = [1 - share * index / cells * 0.5 for index in range(cells, 0, -1)]
        np.testing.assert_allclose(np.unique(actual), np.unique(expected), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_drop_path_is_for_training(name):
    """Evaluation drops nothing and needs no global step; neither do features in evaluation."""
    build(name, settings={"drop_path_keep_prob": 0.5})
    assert tf.train.get_global_step() is None
    types = {op.type for op in tf.get_default_graph().get_operations()}
    assert "Floor" not in types


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_cifar", "nasnet_mobile"])
def test_current_step_takes_the_place_of_the_global_step(name):
    """With `current_step` no global step is made."""
    step = tf.placeholder_with_default(0.0, [])
    settings = {"drop_path_keep_prob": 0.5}
    logits, _ = build(name, settings=settings, is_training=True, current_step=step)
    assert tf.train.get_global_step() is None
    start, again, end = evaluate(logits, [{}, {}, {step: 100}])
    np.testing.assert_array_equal(start, again)
    assert not np.allclose(start, end)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_global_step(name):
    """A global step that exists is taken; else one is made, in the first cell."""
    first = "cell_0" if name == "nasnet_cifar" else "cell_stem_0"
    settings = {"drop_path_keep_prob": 0.5}
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        build(name, settings=settings, is_training=True)
        assert tf.get_collection(tf.GraphKeys.GLOBAL_STEP) == [step]
    build(name, settings=settings, is_training=True)
    made = tf.train.get_global_step().op.name
    assert made == f"{first}/comb_iter_0/left/global_step"


@pytest.mark.slow
@pytest.mark.parametrize("name", SIDES)
def test_evaluation_shares_the_variables_of_training(name):
    """An evaluation graph beside the training graph makes no variable."""
    build(name, is_training=True)
    before = tf.global_variables()
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        build(name)
    assert tf.global_variables() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "config", "scope"),
    [
        pytest.param(
            nasnet.build_nasnet_large,
            nasnet.large_imagenet_config,
            nasnet.nasnet_large_arg_scope,
            id="nasnet_large",
        ),
        pytest.param(
            pnasnet.build_pnasnet_large,
            pnasnet.large_imagenet_config,
            pnasnet.pnasnet_large_arg_scope,
            id="pnasnet_large",
        ),
    ],
)
def test_config_overrides_one_setting(function, config, scope):
    """Code that changes a setting of the published config gets the rest of it as published."""
    changed = config()
    changed.set_hparam("num_conv_filters", 24)
    with slim.arg_scope(scope()):
        _, end_points = function(
            tf.zeros([1, 64, 64, 3]), 5, is_training=False, config=changed, final_endpoint="Cell_1"
        )
    blocks = 6 if function is nasnet.build_nasnet_large else 5
    assert end_points["Cell_1"].shape.as_list() == [1, 8, 8, blocks * 24]
    assert tf.trainable_variables("conv0/weights")[0].shape.as_list() == [3, 3, 3, 96]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_cifar", "pnasnet_mobile"])
def test_bounded_activation(name):
    """With bounded activations no value that a cell passes on is beyond 6, and no ReLU is left."""
    _, end_points = build(name, settings={"use_bounded_activation": True}, is_training=True)
    types = {op.type for op in tf.get_default_graph().get_operations()}
    assert "Relu6" in types
    assert "Relu" not in types
    cells = {key: value for key, value in end_points.items() if "Cell" in key}
    for value in evaluate(cells)[0].values():
        assert np.abs(value).max() <= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nasnet_cifar", "pnasnet_mobile"])
def test_channels_first(name):
    """With NCHW the maps have their channels first and the same sizes, on the same variables."""
    with tf.Graph().as_default():
        _, usual = build(name, is_training=True)
        variables = [(v.op.name, v.shape.as_list()) for v in tf.global_variables()]
    _, end_points = build(name, settings={"data_format": "NCHW"}, is_training=True)
    assert [(v.op.name, v.shape.as_list()) for v in tf.global_variables()] == variables
    for key, value in usual.items():
        batch, *sides, channels = value.shape.as_list()
        assert end_points[key].shape.as_list() == [batch, channels, *sides], key
