"""Tests of `model_deploy.rewrites.precision`: which ops compute in 16 bits, and how well."""

import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy import DeploymentConfig, deploy, describe, slim
from model_deploy.deployment import session_config
from model_deploy.rewrites import computing_in
from tests import clusters, copies, harness, laws
from tests.goldens import GOLDENS, LogicalDevices, cpu_config

SIXTEEN = ["bfloat16", "float16"]
# Distance of neighbours near 1: 7 and 10 bits behind the point.
SPACING = {"bfloat16": 2.0**-7, "float16": 2.0**-10}


def _types():
    """Types of the values that ops of each type compute with, in the default graph."""
    found = {}
    for op in tf.get_default_graph().get_operations():
        if "T" in op.node_def.attr and op.outputs:
            found.setdefault(op.type, set()).add(op.outputs[0].dtype.name)
    return found


def _network(images):
    net = slim.conv2d(images, 4, 3, normalizer_fn=slim.batch_norm, scope="conv")
    net = net + slim.separable_conv2d(net, 4, 3, 1, scope="separable")
    net = slim.flatten(slim.max_pool2d(net, 2))
    return slim.fully_connected(net, 3, activation_fn=None, scope="logits")


@pytest.mark.parametrize("precision", SIXTEEN)
def test_types_of_ops(precision):
    """What multiplies and what lies between is in 16 bits; softmax, losses and norms are not."""
    with computing_in(precision, "/device:GPU:0"):
        logits = _network(tf.ones([2, 8, 8, 3]))
        tf.losses.sparse_softmax_cross_entropy([0, 1], logits)
        probabilities = tf.nn.softmax(logits)
    types = _types()
    for name in ("Conv2D", "DepthwiseConv2dNative", "MatMul", "FusedBatchNormV3", "Relu"):
        assert types[name] == {precision}, name
    assert precision in types["AddV2"]  # others are of initial values
    for name in ("Softmax", "SparseSoftmaxCrossEntropyWithLogits"):
        assert types[name] == {"float32"}, name
    assert logits.dtype == probabilities.dtype == tf.float32
    assert {v.dtype.base_dtype for v in tf.global_variables()} == {tf.float32}
    norms = [op for op in tf.get_default_graph().get_operations() if op.type == "FusedBatchNormV3"]
    assert [norms[0].outputs[i].dtype for i in range(3)] == [precision, tf.float32, tf.float32]


@pytest.mark.parametrize(
    ("build", "kind", "dtype"),
    [
        pytest.param(lambda y: y - tf.fill([2, 2], 3.0), "Sub", "float32", id="target"),
        pytest.param(lambda y: y - tf.constant([3.0, 4.0]), "Sub", "bfloat16", id="constant"),
        pytest.param(lambda y: y * tf.Variable(2.0), "Mul", "bfloat16", id="variable"),
        pytest.param(
            lambda y: tf.nn.l2_loss(tf.get_variable("w", [3])), "L2Loss", "float32", id="l2"
        ),
        pytest.param(tf.exp, "Exp", "float32", id="exp"),
        pytest.param(tf.reduce_mean, "Mean", "float32", id="mean"),
        pytest.param(
            lambda y: tf.concat([y, tf.nn.relu(y)], 0), "ConcatV2", "bfloat16", id="concat"
        ),
        pytest.param(lambda y: tf.split(y, 2)[1] + y[:1], "Split", "bfloat16", id="split"),
    ],
)
def test_what_follows_a_product(build, kind, dtype):
    """A value in 16 bits stays so with variables and constants; other values of 32 bits win."""
    with computing_in("bfloat16"):
        made = build(tf.matmul(tf.ones([2, 2]), tf.ones([2, 2])))
    assert _types()[kind] == {dtype}
    assert made.dtype == tf.float32


def test_values_that_16_bits_hold_are_exact():
    """A product of small integers is the same as in float32."""
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) - 6
    with computing_in("bfloat16"):
        product = tf.matmul(tf.constant(a, tf.float32), tf.constant(b, tf.float32))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(product), a @ b)


@functools.cache
def _gradients(kind, precision):
    """Gradients of the mean square of what a layer makes, for its images and all variables."""
    rank, build = CONVOLUTIONS[kind]
    shape = (2, *[6] * (rank - 2), _CHANNELS)
    images = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    with tf.Graph().as_default(), tf.Session(config=cpu_config(rewritten=False)) as session:
        tf.set_random_seed(1)
        given = tf.constant(images)
        with computing_in(precision):
            loss = tf.reduce_mean(tf.square(build(given)))
        gradients = tf.gradients(loss, [given, *tf.trainable_variables()])
        assert {each.dtype for each in gradients} == {tf.float32}
        session.run(tf.global_variables_initializer())
        return session.run(gradients)


def _wide(images):
    """As many channels as a convolution of 1 x 1 has on CPUs that computes in 16 bits."""
    return tf.tile(images, [1, 1, 1, 3])


# Enough for filters of three positions to be in 16 bits on CPUs.
_CHANNELS = 24
CONVOLUTIONS = {
    "conv2d": (4, lambda x: slim.conv2d(x, 4, 3, stride=2)),
    "conv2d of 1 x 1": (4, lambda x: slim.conv2d(_wide(x), 16, 1)),
    "conv2d of 1 x 1, strided": (4, lambda x: slim.conv2d(_wide(x), 16, 1, stride=2)),
    "conv2d of 2 x 3": (4, lambda x: slim.conv2d(x, 4, [2, 3], stride=[1, 2])),
    "conv2d of 3 x 1, valid": (4, lambda x: slim.conv2d(x, 4, [3, 1], padding="VALID")),
    "conv2d padded": (
        4,
        lambda x: tf.nn.conv2d(
            x, tf.get_variable("w", [3, 3, _CHANNELS, 4]), 2, [[0, 0], [1, 0], [2, 1], [0, 0]]
        ),
    ),
    "conv2d of many positions": (4, lambda x: slim.conv2d(tf.tile(x, [1, 2, 2, 1]), 4, 3)),
    "conv2d dilated": (4, lambda x: slim.conv2d(x, 4, 3, rate=2)),
    "separable": (
        4,
        lambda x: slim.separable_conv2d(slim.conv2d(x, 16, 3), 16, 3, 2, activation_fn=None),
    ),
    "transposed": (4, lambda x: slim.conv2d_transpose(x, 4, 3, stride=2)),
    "conv3d": (5, lambda x: slim.conv3d(x, 4, 3)),
    "conv3d of depth 2": (5, lambda x: slim.conv3d(x[:, :2], 208, 3)),
    "transposed 3d": (5, lambda x: slim.conv3d_transpose(x, 4, 3, stride=2)),
    "dense": (2, lambda x: slim.fully_connected(x, 4)),
}


@pytest.mark.gpu
@pytest.mark.one_mode
@pytest.mark.parametrize("precision", SIXTEEN)
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_gradients_are_close_to_those_of_float32(kind, precision):
    """Gradients of each kind of layer differ from those of float32 by the rounding of 16 bits."""
    exact, found = (_gradients(kind, name) for name in ("float32", precision))
    for actual, expected in zip(found, exact, strict=True):
        limit = 4 * SPACING[precision] * np.max(np.abs(expected))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=limit)
    assert any(np.any(a != b) for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize(
    ("size", "kernel", "device", "by_kernel"),
    [
        pytest.param(10, 3, "", False, id="few positions"),
        pytest.param(11, 3, "", True, id="many"),
        pytest.param(11, 1, "", False, id="many of 1 x 1"),
        pytest.param(10, 3, "/device:GPU:0", True, id="GPU"),
    ],
)
def test_which_filters_take_products(size, kernel, device, by_kernel):
    """On a CPU the gradient of a filter in bfloat16 is made of products, where these are fast."""
    with tf.device(device):
        images = tf.ones([1, size, size, 64])
        with computing_in("bfloat16", device):
            made = slim.conv2d(images, 16, kernel)
        tf.gradients(made, tf.trainable_variables())
    assert ("Conv2DBackpropFilter" in _types()) == by_kernel


def test_what_a_tape_records():
    """While a tape records, ops are those that were asked for, and its gradients are theirs."""
    weight = tf.constant([[2.0]])
    with computing_in("bfloat16"):
        with tf.GradientTape() as tape:
            tape.watch(weight)
            product = tf.matmul([[3.0]], weight)
        gradient = tape.gradient(product, weight)
    assert product.op.type == "MatMul"
    with tf.Session() as session:
        assert session.run(gradient).tolist() == [[3.0]]


def test_gradients_in_a_model():
    """A penalty on gradients that `model_fn` takes by `tf.gradients` trains, in 16 bits."""

    def model_fn():
        images = tf.ones([2, 4, 4, 1])
        score = tf.reduce_sum(slim.flatten(slim.conv2d(images, 2, 3, activation_fn=tf.nn.tanh)))
        [slope] = tf.gradients(score, images)
        tf.losses.add_loss(tf.reduce_mean(tf.square(slope)))

    config = LogicalDevices(num_clones=2, precision="bfloat16")
    model = deploy(config, model_fn, optimizer=harness.sgd())
    losses, _ = harness.run_steps(model, steps=4)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("library", [keras, tf_keras], ids=["keras", "tf_keras"])
def test_models_of_keras(library):
    """A model of Keras computes in 16 bits, keeps variables of 32, and trains."""

    def model_fn():
        net = library.layers.Conv2D(16, 3, activation="relu")(tf.ones([2, 6, 6, 3]))
        net = library.layers.Dense(3, kernel_initializer="zeros")(library.layers.Flatten()(net))
        tf.losses.sparse_softmax_cross_entropy([0, 1], net)

    with tf.variable_scope(""):
        config = LogicalDevices(precision="bfloat16")
        model = deploy(config, model_fn, optimizer=harness.sgd(0.01))
    assert "bfloat16" in _types()["Conv2D"]
    assert "float32" not in _types()["Conv2D"]
    losses, _ = harness.run_steps(model, steps=4)
    assert losses[-1] < losses[0]


@pytest.mark.gpu
@pytest.mark.slow
def test_everything_at_once():
    """Copied clones with parts, in 16 bits, with a scale, synchronized norms and clipping."""

    def build(images, labels):
        net = slim.conv2d(images, 4, 3, normalizer_fn=slim.batch_norm, scope="conv")
        logits = slim.fully_connected(slim.flatten(net), 3, activation_fn=None, scope="logits")
        tf.losses.sparse_softmax_cross_entropy(labels, logits)

    config = LogicalDevices(
        num_clones=2,
        copy_clones=True,
        accumulate_steps=2,
        precision="float16",
        sync_batch_norm=True,
    )
    golden = dataclasses.replace(GOLDENS["convolution"], model_fn=build)
    run = harness.Replica(config, golden, lambda: tf.train.AdamOptimizer(0.05), clip_norm=1.0)
    run(steps=12)
    assert run.values["loss_scale/left_out"] < 3
    assert run.losses[-1] < run.losses[0]
    report = str(describe(run.model))
    for line in ("accumulate_steps 2", "precision float16", "sync_batch_norm"):
        assert line in report


def test_loops():
    """A product in a loop is in 16 bits, in functions and in the loops of TensorFlow 1."""
    golden = GOLDENS["loop"]
    with computing_in("bfloat16"):
        golden.model_fn(tf.constant(golden.features), tf.constant(golden.labels))
    graphs = tf.get_default_graph().as_graph_def()
    nodes = [*graphs.node, *(node for f in graphs.library.function for node in f.node_def)]
    types = {node.attr["T"].type for node in nodes if node.op == "MatMul"}
    assert types == {tf.bfloat16.as_datatype_enum}


@functools.cache
def _in_32_bits(name):
    """Losses and values of one clone."""
    run = harness.one_clone(laws.MODELS[name], precision="float32")
    return run.losses, run.values


# What programs of TensorFlow 1 have otherwise.
_IN_BOTH_MODES = ("embedding", "loop", "batch_norm")


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("precision", SIXTEEN)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in _IN_BOTH_MODES else [pytest.mark.one_mode])
        for name in (*GOLDENS, "residual keras inside", "residual tf_keras before")
    ],
)
def test_a_clone_trains_as_in_32_bits(name, precision):
    """Losses differ by roundings, and variables keep their types.

    That clones and parts train as one clone in 16 bits is in `tests/laws.py`.
    """
    run = harness.one_clone(laws.MODELS[name], precision=precision)
    losses, values = _in_32_bits(name)
    np.testing.assert_allclose(run.losses, losses, rtol=8 * SPACING[precision])
    for variable, value in values.items():
        assert run.values[variable].dtype == value.dtype
        if "moving" in variable:
            np.testing.assert_allclose(run.values[variable], value, rtol=0.05, atol=0.02)


@pytest.mark.gpu
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("name", "precision"), [("convolution", "bfloat16"), ("batch_norm", "float16")]
)
def test_copied_clones_train_as_called_ones(name, precision):
    """Clones that are copies compute the same bits as clones that were built by calls."""
    called, copied = (
        harness.Replica(
            LogicalDevices(num_clones=2, copy_clones=copy, precision=precision),
            GOLDENS[name],
            harness.momentum,
        )
        for copy in (False, True)
    )
    assert copies.nodes(copied.graph) == copies.nodes(called.graph)
    harness.assert_equal(copied(), called())


@pytest.mark.one_mode
@pytest.mark.parametrize("precision", SIXTEEN)
def test_fused_layers_in_a_cluster(precision):
    """A convolution with a bias and an activation trains on a server, in a rewritten graph."""

    def model_fn():
        net = slim.conv2d(tf.ones([2, 28, 28, 1]), 32, 5)
        tf.losses.mean_squared_error(tf.zeros(net.shape), net)

    config = LogicalDevices(num_ps_tasks=2, clone_on_cpu=True, precision=precision)
    model = deploy(config, model_fn, optimizer=harness.sgd())
    [target] = clusters.workers(1)
    losses, _ = harness.run_steps(model, steps=2, target=target, proto=session_config(config))
    assert losses[1] < losses[0]


def test_unknown_precision():
    """A config with another precision names the choices."""
    with pytest.raises(ValueError, match=r"precision must be one of .*, got 'half'"):
        DeploymentConfig(precision="half")


def test_report_of_types():
    """`describe` counts the ops that compute in 16 bits, and those of such types in float32."""
    config = LogicalDevices(precision="bfloat16")
    model = harness.Replica(config, GOLDENS["linear"]).model
    # A product, its two gradients, and what adds the bias; the error is computed in float32.
    assert "precision bfloat16: 3 MatMul, 1 AddV2; in float32: " in str(describe(model))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("layer", "taken", "channels", "types"),
    [
        pytest.param("1 x 1", 64, 24, ["float32", "float32"], id="1 x 1"),
        pytest.param("1 x 1", 63, 32, ["float32", "float32"], id="1 x 1 of few channels"),
        pytest.param("1 x 1", 64, 32, ["bfloat16", "bfloat16"], id="1 x 1, whole groups"),
        pytest.param("3 x 3", 8, 24, ["bfloat16", "float32"], id="3 x 3"),
        pytest.param("3 x 3", 7, 24, ["float32", "float32"], id="3 x 3 of few channels"),
        pytest.param("3 x 3", 7, 32, ["bfloat16", "bfloat16"], id="3 x 3, whole groups"),
        pytest.param("depthwise", 32, 32, ["float32", "float32"], id="depthwise"),
        pytest.param("behind", 64, 32, ["float32", "float32"], id="depthwise behind 16 bits"),
    ],
)
def test_what_is_slow_on_cpus(layer, taken, channels, types):
    """On a CPU batch norms of channels in no whole groups of 16, and what is little work, stay."""
    net = tf.ones([2, 4, 4, taken])
    is_depthwise = layer in ("depthwise", "behind")
    with computing_in("bfloat16"), slim.arg_scope([slim.batch_norm], fused=True):
        if layer == "behind":
            net = slim.conv2d(net, channels, 1, activation_fn=None)
        if is_depthwise:
            slim.separable_conv2d(net, None, 3, 1, normalizer_fn=slim.batch_norm)
        else:
            slim.conv2d(net, channels, int(layer[0]), normalizer_fn=slim.batch_norm)
    found = _types()
    convolution = "DepthwiseConv2dNative" if is_depthwise else "Conv2D"
    assert [found[convolution], found["FusedBatchNormV3"]] == [{kind} for kind in types]
    assert found["Relu"] == {types[1]}
