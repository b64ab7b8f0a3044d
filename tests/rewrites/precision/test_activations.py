"""Activations between ops in 16 bits: on CPUs and GPUs, and their gradients."""

import functools
import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, describe, slim
from model_deploy.rewrites import computing_in
from nets.mobilenet.v3_layers import hard_swish
from tests import harness
from tests.goldens import cpu_config

# Distance of neighbours near 1: 7 and 10 bits behind the point.
SPACING = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
# Float16 has no digits for numbers below 6e-5.
_LOSS_SCALE = 1000.0
ACTIVATIONS = {
    "crelu": tf.nn.crelu,
    "elu": tf.nn.elu,
    "gelu": lambda x: 0.5 * x * (1.0 + tf.tanh(0.7978846 * (x + 0.044715 * tf.pow(x, 3.0)))),
    "hard_sigmoid": lambda x: tf.nn.relu6(x + 3.0) * (1.0 / 6.0),
    "hard_swish": hard_swish,
    "leaky_relu": tf.nn.leaky_relu,
    "mish": lambda x: x * tf.tanh(tf.nn.softplus(x)),
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "selu": tf.nn.selu,
    "sigmoid": tf.sigmoid,
    "softplus": tf.nn.softplus,
    "softsign": tf.nn.softsign,
    "swish": tf.nn.swish,
    "tanh": tf.tanh,
}


def _model(activation):
    """A loss of two convolutions with an activation behind each."""
    images = np.random.default_rng(1).normal(size=[2, 4, 4, 16]).astype(np.float32)
    net = tf.constant(images)
    for name in ("first", "second"):
        net = slim.conv2d(net, 16, 3, activation_fn=activation, scope=name)
    tf.losses.add_loss(tf.reduce_mean(tf.square(net)))


@functools.cache
def _gradients(name, precision):
    with tf.Graph().as_default(), tf.Session(config=cpu_config(rewritten=False)) as session:
        tf.set_random_seed(1)
        with computing_in(precision):
            _model(ACTIVATIONS[name])
        loss = _LOSS_SCALE * tf.losses.get_total_loss()
        gradients = tf.gradients(loss, tf.trainable_variables())
        session.run(tf.global_variables_initializer())
        return session.run(gradients)


# Both kinds of variables are in `test_computing.py`.
@pytest.mark.one_mode
@pytest.mark.parametrize("precision", SPACING)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_are_close_to_those_of_float32(name, precision):
    """Through each activation gradients differ from those of float32 by the rounding of 16 bits."""
    exact, found = (_gradients(name, each) for each in ("float32", precision))
    for actual, expected in zip(found, exact, strict=True):
        # Where a slope jumps single numbers differ by more: a rounding decides on the side.
        distance = np.linalg.norm(actual - expected) / np.linalg.norm(expected)
        assert distance < 4 * SPACING[precision]
    assert any(np.any(a != b) for a, b in zip(found, exact, strict=True))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "precision"), list(zip(ACTIVATIONS, itertools.cycle(SPACING), strict=False))
)
def test_each_trains(name, precision):
    """With each activation steps in 16 bits make the loss smaller."""
    config = DeploymentConfig(clone_on_cpu=True, precision=precision)
    model = deploy(config, lambda: _model(ACTIVATIONS[name]), optimizer=harness.sgd())
    losses, _ = harness.run_steps(model, steps=4)
    assert losses[-1] < losses[0]


def _types_behind(build, device, precision):
    """By type of op the types in which ops, and their gradients, compute behind a convolution."""
    with tf.Graph().as_default() as graph:
        with computing_in(precision, device):
            inputs = slim.conv2d(tf.ones([2, 4, 4, 16]), 16, 3, activation_fn=None)
            made = build(inputs)
        before = {inputs.op.name}
        tf.gradients(made, tf.trainable_variables())
        found = {}
        for op in graph.get_operations():
            if "T" in op.node_def.attr and op.outputs and op.name not in before:
                found.setdefault(op.type, set()).add(op.outputs[0].dtype.name)
        return found


@pytest.mark.one_mode
@pytest.mark.parametrize("precision", SPACING)
@pytest.mark.parametrize(
    ("build", "types"),
    [
        pytest.param(tf.nn.relu6, ["Relu6", "Relu6Grad"], id="relu6"),
        pytest.param(tf.sigmoid, ["Sigmoid", "SigmoidGrad"], id="sigmoid"),
        pytest.param(tf.tanh, ["Tanh", "TanhGrad"], id="tanh"),
        pytest.param(lambda x: x + 3.0, ["AddV2"], id="sum with a number"),
        pytest.param(lambda x: 1.0 - x, ["Sub"], id="difference from a number"),
        pytest.param(hard_swish, ["AddV2", "Relu6", "Mul", "Relu6Grad"], id="hard swish"),
        pytest.param(
            lambda x: slim.separable_conv2d(x, None, 3, 1),
            [
                "DepthwiseConv2dNative",
                "DepthwiseConv2dNativeBackpropInput",
                "DepthwiseConv2dNativeBackpropFilter",
            ],
            id="depthwise convolution",
        ),
    ],
)
def test_what_stays_in_32_bits_on_cpus(build, types, precision):
    """What CPUs compute slower in 16 bits, and its gradient, is in float32 there, not on GPUs."""
    on_cpu, on_gpu = (
        _types_behind(build, device, precision) for device in ("/device:CPU:0", "/device:GPU:1")
    )
    for each in types:
        assert on_cpu[each] == {"float32"}, each
        assert precision in on_gpu[each], each
    assert on_cpu["Conv2D"] == on_gpu["Conv2D"] == {precision}


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        pytest.param(tf.nn.relu, "Relu", id="relu"),
        pytest.param(lambda x: x + tf.nn.relu(x), "AddV2", id="sum of branches"),
        pytest.param(lambda x: x + tf.get_variable("v", [16]), "AddV2", id="sum with a variable"),
        pytest.param(lambda x: x * 0.5, "Mul", id="product with a number"),
    ],
)
def test_what_is_in_16_bits_on_cpus_too(build, kind):
    """What takes no longer than casts would stays in 16 bits."""
    assert _types_behind(build, "", "bfloat16")[kind] >= {"bfloat16"}


@pytest.mark.parametrize("on_cpu", [True, False])
def test_the_deployment_decides(on_cpu):
    """Clones that a config puts on GPUs have activations in 16 bits, clones on CPUs in float32."""
    config = DeploymentConfig(clone_on_cpu=on_cpu, precision="bfloat16")
    model = deploy(config, lambda: _model(tf.nn.relu6), optimizer=harness.sgd())
    in_16_bits, in_32_bits = describe(model).precision.split("; in float32: ")
    assert ("2 Relu6" in in_16_bits, "2 Relu6" in in_32_bits) == (not on_cpu, on_cpu)
