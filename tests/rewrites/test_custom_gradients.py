"""Functions with gradients of their own, between ops in 16 bits or with channels first."""

import functools
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.rewrites import computing_in, computing_in_layout
from tests import devices, harness
from tests.goldens import Golden, LogicalDevices

# Enough for a convolution to be in 16 bits on CPUs.
_CHANNELS = 64
_BATCH = 8
# Float16 has no digits for numbers below 6e-5.
_LOSS_SCALE = 1000.0
# What is made in another form, and how far its roundings may take a gradient from float32: some
# ten of them lie on a path, each of half the distance of neighbours near 1.
FORMS = {
    "bfloat16": (lambda: computing_in("bfloat16"), 10 * 2.0**-8),
    "float16": (lambda: computing_in("float16"), 10 * 2.0**-11),
    "channels first": (lambda: computing_in_layout("NCHW"), 1e-5),
}


def _filters(name):
    values = np.random.default_rng(2).normal(size=[1, 1, _CHANNELS, _CHANNELS])
    start = tf.constant_initializer(values / np.sqrt(_CHANNELS))
    return tf.get_variable(name, values.shape, initializer=start, use_resource=True)


def _convolution(inputs, name):
    return tf.nn.conv2d(inputs, _filters(name), 1, "SAME")


def _beta():
    return tf.get_variable("beta", [], initializer=tf.ones_initializer(), use_resource=True)


@tf.custom_gradient
def _reversed(inputs):
    """The inputs, whose gradient comes back three times as large and with the other sign."""
    return tf.identity(inputs), lambda gradient: -3 * gradient


@tf.custom_gradient
def _halves(inputs):
    """Two outputs; the gradient of the second is left out."""
    first, second = tf.split(inputs * 2.0, 2, axis=-1)
    return (first, second), lambda gradient, _: tf.concat([2 * gradient, 0 * gradient], -1)


@tf.custom_gradient
def _nested(inputs):
    inner = tf.nn.tanh(_reversed(tf.nn.swish(inputs))) * 2.0
    return inner, lambda gradient: 5 * gradient


@tf.custom_gradient
def _with_variable(inputs):
    """A convolution with a variable that the function makes; the gradient of that is doubled."""

    def gradients(gradient, variables=()):
        flat = tf.reshape(gradient, [-1, _CHANNELS])
        [inside] = variables
        product = tf.matmul(tf.reshape(inputs, [-1, _CHANNELS]), flat, transpose_a=True)
        return 0.5 * gradient, [tf.reshape(2 * product, inside.shape)]

    return _convolution(inputs, "inside"), gradients


FUNCTIONS = {
    "swish": tf.nn.swish,
    "swish with a trained beta": lambda x: tf.nn.silu(x, beta=_beta()),
    "reversed": _reversed,
    "two outputs": lambda x: tf.concat(_halves(x), -1),
    "nested": _nested,
    "with a variable": _with_variable,
    "recomputed": tf.recompute_grad(lambda x: tf.nn.tanh(_convolution(x, "inside"))),
}


def _model_fn(function):
    def build(images, labels):
        hidden = function(_convolution(images, "before"))
        outputs = tf.nn.tanh(function(_convolution(hidden, "behind")))
        tf.losses.mean_squared_error(labels, tf.reduce_mean(outputs, [1, 2, 3]))

    def with_reuse(images, labels):
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            build(images, labels)

    return with_reuse


def _golden(name):
    rng = np.random.default_rng(1)
    images = rng.normal(size=(_BATCH, 2, 3, _CHANNELS)).astype(np.float32)
    labels = rng.normal(size=[_BATCH]).astype(np.float32)
    return Golden(name, images, labels, _model_fn(FUNCTIONS[name]))


@functools.cache
def _gradients(name, form=None):
    """Gradients for the images and all variables, by name."""
    in_form = FORMS[form][0] if form else lambda: computing_in("float32")
    golden = _golden(name)
    with tf.Graph().as_default(), tf.Session() as session:
        images = tf.constant(golden.features)
        with in_form():
            golden.model_fn(images, golden.labels)
        variables = tf.trainable_variables()
        loss = _LOSS_SCALE * tf.losses.get_total_loss()
        found = tf.gradients(loss, [images, *variables])
        session.run(tf.global_variables_initializer())
        names = ["images", *(variable.op.name for variable in variables)]
        return dict(zip(names, session.run(found), strict=True))


# The functions have resource variables in both modes.
@pytest.mark.one_mode
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_function(name, form):
    """In each form, gradients are those that the function gives, but for roundings."""
    if form == "channels first":
        devices.need_channels_first()
    _, tolerance = FORMS[form]
    expected, found = _gradients(name), _gradients(name, form)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        limit = tolerance * np.max(np.abs(value))
        assert limit > 0, key
        np.testing.assert_allclose(found[key], value, rtol=0, atol=limit, err_msg=key)


_WITH_VARIABLES = ("recomputed", "swish with a trained beta", "with a variable")
_BY = [(name, way) for name in FUNCTIONS for way in ("called", "copied")]
_BY += [(name, "all_reduce") for name in _WITH_VARIABLES]
_IN_BOTH_MODES = (("nested", "copied"), ("recomputed", "called"), ("with a variable", "all_reduce"))


@functools.cache
def _one_clone(name):
    run = harness.one_clone(_golden(name), precision="bfloat16")
    return types.SimpleNamespace(losses=run.losses, values=run.values)  # and no graph


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(*cell, marks=[] if cell in _IN_BOTH_MODES else [pytest.mark.one_mode])
        for cell in _BY
    ],
)
def test_clones_train_as_one(name, way):
    """Two clones in bfloat16 end where one clone on the whole batch ends; so do those that have
    variables of their own, which functions find as they find those of one clone.
    """
    options = {"copied": {"copy_clones": True}, "all_reduce": {"all_reduce": True}}.get(way, {})
    config = LogicalDevices(num_clones=2, precision="bfloat16", **options)
    two = harness.Replica(config, _golden(name))()
    harness.assert_same(two, _one_clone(name), tolerance=2.0**-7, losses=2.0**-7)
