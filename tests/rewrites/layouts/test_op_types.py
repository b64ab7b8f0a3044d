"""Each type of op computes with channels first what it computes with channels last."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.rewrites import computing_in_layout
from model_deploy.settings import GpuSettings

SHAPE = (2, 6, 4, 3)
VIDEOS = (2, 3, 6, 4, 3)
CONFIG = gpus.session_config(GpuSettings(data_format="NCHW"), on_cpu=True)


def _numbers(*shape):
    return np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


def _filters(*shape):
    return tf.constant(_numbers(*shape) / 2)


def _pooled(x):
    """Images that are known to have their channels first."""
    return tf.nn.max_pool2d(x, 2, 1, "SAME")


def _normalized(x, **options):
    return tf.nn.fused_batch_norm(x, [1.0, 2.0, 3.0], [0.5, 0.0, -1.0], **options)


def _of_batch(x):
    y, mean, variance = _normalized(x)
    return tf.concat([tf.reshape(y, [-1]), mean, variance], axis=0)


def _moments_of_one(x):
    return _normalized(x, mean=[0.1] * 3, variance=[0.5] * 3, is_training=False)[0]


def _explicitly_padded(x):
    padding = [[0, 0], [2, 1], [0, 3], [0, 0]]
    return tf.nn.conv2d(x, _filters(3, 3, 3, 5), [1, 2, 1, 1], padding)


def _transposed(x):
    shape = tf.stack([tf.shape(x)[0], 12, 8, 5])
    return tf.nn.conv2d_transpose(x, _filters(3, 3, 5, 3), shape, 2, "SAME")


# The type whose ops are looked at, what makes one, and its input's shape.
WITH_LAYOUT = [
    ("Conv2D", lambda x: tf.nn.conv2d(x, _filters(3, 2, 3, 5), [1, 2, 1, 1], "SAME"), SHAPE),
    ("Conv2D", lambda x: tf.nn.conv2d(x, _filters(2, 2, 3, 5), 1, "SAME", dilations=2), SHAPE),
    ("Conv2D", _explicitly_padded, SHAPE),
    ("Conv2DBackpropInput", _transposed, SHAPE),
    (
        "DepthwiseConv2dNative",
        lambda x: tf.nn.depthwise_conv2d(x, _filters(3, 3, 3, 2), [1, 2, 2, 1], "SAME"),
        SHAPE,
    ),
    ("MaxPool", lambda x: tf.nn.max_pool2d(x, [3, 2], [1, 2], "VALID"), SHAPE),
    ("AvgPool", lambda x: tf.nn.avg_pool2d(x, [2, 3], [2, 1], "SAME"), SHAPE),
    ("FusedBatchNormV3", _of_batch, SHAPE),
    ("FusedBatchNormV3", _moments_of_one, SHAPE),
    ("Conv3D", lambda x: tf.nn.conv3d(x, _filters(2, 3, 2, 3, 4), [1, 1, 2, 1, 1], "SAME"), VIDEOS),
    ("MaxPool3D", lambda x: tf.nn.max_pool3d(x, [1, 3, 2], [1, 1, 2], "SAME"), VIDEOS),
    ("AvgPool3D", lambda x: tf.nn.avg_pool3d(x, [3, 2, 1], [2, 1, 1], "VALID"), VIDEOS),
]
PAIRS = [[0, 1], [2, 0], [1, 3], [0, 2]]
BETWEEN = [
    ("Relu", tf.nn.relu),
    ("LeakyRelu", lambda x: tf.nn.leaky_relu(x, 0.3)),
    ("Identity", tf.identity),
    ("Cast", lambda x: tf.cast(x, tf.float64)),
    ("AddV2", lambda x: x + 2.0),
    ("AddV2", lambda x: tf.add(x, [1.0, 2.0, 3.0])),
    ("AddV2", lambda x: x + tf.nn.relu(x)),
    ("AddV2", lambda x: x + _numbers(2, 1, 4, 3)),
    ("AddN", lambda x: tf.add_n([x, x, tf.constant(_numbers(*SHAPE))])),
    ("Mul", lambda x: tf.reduce_mean(x, [1, 2], keepdims=True) * x),
    ("Maximum", lambda x: tf.maximum(tf.constant([0.1, 0.2, 0.3]), x)),
    ("SelectV2", lambda x: tf.where_v2(tf.constant(_numbers(*SHAPE) > 0), x, 0.0)),
    ("BiasAdd", lambda x: tf.nn.bias_add(x, [1.0, 2.0, 3.0])),
    ("Mean", lambda x: tf.reduce_mean(x, [1, 2])),
    ("Mean", lambda x: tf.reduce_mean(x, [-3, -2], keepdims=True)),
    ("Sum", lambda x: tf.reduce_sum(x, 3)),
    ("Sum", tf.reduce_sum),
    ("Max", lambda x: tf.reduce_max(x, [0, 1, 2])),
    ("Squeeze", lambda x: tf.squeeze(tf.reduce_mean(x, [1, 2], keepdims=True), [1, 2])),
    ("ConcatV2", lambda x: tf.concat([x, x + 1.0, tf.constant(_numbers(2, 6, 4, 1))], 3)),
    ("ConcatV2", lambda x: tf.concat([x, x], -2)),
    ("Pad", lambda x: tf.pad(x, PAIRS)),
    ("Pad", lambda x: tf.pad(x, tf.placeholder_with_default(PAIRS, [4, 2]))),
    ("PadV2", lambda x: tf.pad(x, PAIRS, constant_values=7.0)),
    ("MirrorPad", lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], mode="REFLECT")),
]
# What takes another road: it gets its images as they are.
OTHERS = [
    lambda x: tf.reduce_sum(x, [1]),
    lambda x: tf.reduce_mean(x, tf.placeholder_with_default([1, 2], [2]), keepdims=True),
    lambda x: tf.squeeze(x[:, :1]),
    lambda x: x + _numbers(4, 3),
    lambda x: tf.concat([x, x], tf.placeholder_with_default(3, [])),
    lambda x: tf.nn.lrn(x, 1),
    lambda x: tf.reshape(x, [2, -1]),
    lambda x: x[:, ::2, 1:],
    lambda x: tf.stack(tf.unstack(x, axis=1)),
    tf.shape,
]


def _values(build, data_format, shape, dynamic=False):
    """Value, gradient and ops of what a function makes of images."""
    with tf.Graph().as_default() as graph:
        known = [None, None, None, shape[-1]] if dynamic else shape
        images = tf.placeholder_with_default(_numbers(*shape), known)
        with computing_in_layout(data_format):
            result = build(images)
        loss = tf.reduce_sum(tf.square(tf.cast(result, tf.float32)))
        gradients = [each for each in tf.gradients(loss, [images]) if each is not None]
        with tf.Session(config=CONFIG) as session:
            return session.run([result, *gradients]), result, graph


def _check(build, shape, dynamic=False):
    expected, like, _ = _values(build, "NHWC", shape, dynamic)
    found, result, graph = _values(build, "NCHW", shape, dynamic)
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)
    assert (result.dtype, result.op.name) == (like.dtype, like.op.name)
    if not dynamic:
        assert result.shape.as_list() == like.shape.as_list()
    return graph


def _is_first(op, channels):
    """Whether the images of an op have so many channels, in front."""
    images = [each for each in op.inputs if each.shape.rank in (4, 5)]
    return any(each.shape[1] == channels for each in images)


@pytest.mark.one_mode
@pytest.mark.parametrize(("op_type", "build", "shape"), WITH_LAYOUT)
def test_ops_with_a_layout(op_type, build, shape):
    """Convolutions, pools and norms have channels first, with value and gradient as before."""
    graph = _check(build, shape)
    found = [op for op in graph.get_operations() if op.type == op_type]
    assert found
    for op in found:
        assert op.get_attr("data_format") in (b"NCHW", b"NCDHW")


@pytest.mark.one_mode
@pytest.mark.parametrize(("op_type", "build"), BETWEEN)
def test_ops_between(op_type, build):
    """What follows them, too, so that nothing of it is transposed."""
    graph = _check(lambda x: build(_pooled(x)), SHAPE)
    last = [op for op in graph.get_operations() if op.type == op_type and "grad" not in op.name]
    assert any(_is_first(op, 3) for op in last)


@pytest.mark.one_mode
@pytest.mark.parametrize(("op_type", "build"), BETWEEN)
def test_ops_between_for_sizes_that_are_not_known(op_type, build):
    """The same for images of which only the channels are known."""
    del op_type
    _check(lambda x: build(_pooled(x)), SHAPE, dynamic=True)


@pytest.mark.one_mode
@pytest.mark.parametrize("build", OTHERS)
def test_other_ops(build):
    """What nobody has written for channels first gets images with channels last."""
    _check(lambda x: build(_pooled(x)), SHAPE)


def test_ops_of_other_images_stay():
    """Arithmetic on images that come from no such op is left as it is; so are other formats."""
    with computing_in_layout("NCHW"):
        images = tf.constant(_numbers(*SHAPE))
        total = tf.nn.relu(images + 1.0)
        tf.nn.max_pool2d(tf.transpose(total, [0, 3, 1, 2]), 2, 1, "SAME", data_format="NCHW")
    graph = tf.get_default_graph()
    assert [op.type for op in graph.get_operations()].count("Transpose") == 1
    with computing_in_layout("auto"):
        assert _pooled(images).op.type == "MaxPool"


def test_conditions_loops_and_functions():
    """Ops in branches, bodies and functions compute the same."""

    def build(x):
        y = _pooled(x)
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: tf.nn.relu(y) + 1.0, lambda: y)
        _, y = tf.while_loop(
            lambda i, _: i < 3, lambda i, z: (i + 1, _pooled(z) * 0.9 + y), (tf.constant(0), y)
        )
        return tf.function(lambda z: tf.nn.conv2d(z, _filters(1, 1, 3, 2), 1, "SAME"))(y)

    _check(build, SHAPE)


def test_what_a_tape_records_stays():
    """A `tf.GradientTape` sees the ops that were asked for."""
    with computing_in_layout("NCHW"):
        images = tf.constant(_numbers(*SHAPE))
        with tf.GradientTape() as tape:
            tape.watch(images)
            pooled = _pooled(images)
        (gradient,) = tape.gradient(pooled, [images])
    assert pooled.op.type == "MaxPool"
    with tf.Session() as session:
        assert session.run(tf.reduce_sum(gradient)) == np.prod(SHAPE)


def test_gradients_inside():
    """A model may ask for gradients itself, and for gradients of these."""

    def build(x):
        score = tf.reduce_sum(tf.nn.conv2d(tf.square(x), _filters(3, 3, 3, 1), 1, "SAME") ** 2)
        (slope,) = tf.gradients(score, [x])
        return tf.square(slope)

    _check(build, SHAPE)
