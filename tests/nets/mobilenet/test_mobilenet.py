"""What MobileNet v2 and v3 share, on definitions of the tests' own and on that of v2."""

import copy

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet import conv_blocks, mobilenet
from nets.mobilenet.mobilenet_v2 import V2_DEF
from tests.nets import reference
from tests.nets.values import evaluate, images, variable_names

TINY = {
    "spec": [
        mobilenet.op(slim.conv2d, num_outputs=16, kernel_size=3, stride=2),
        mobilenet.op(conv_blocks.split_separable_conv2d, num_outputs=16, stride=2),
        mobilenet.op(conv_blocks.expanded_conv, num_outputs=24, stride=2),
        mobilenet.op(conv_blocks.expanded_conv, num_outputs=24),
        mobilenet.op(slim.conv2d, num_outputs=24, kernel_size=[1, 1]),
    ]
}


def types():
    """Returns the types of the current graph's ops."""
    return [op.type for op in tf.get_default_graph().get_operations()]


@pytest.mark.slow
def test_overrides():
    """Overrides come after the defaults: here each expansion is done in two parts."""
    conv_defs = copy.deepcopy(V2_DEF)
    conv_defs["spec"] = conv_defs["spec"][:5]
    conv_defs["overrides"] = {(conv_blocks.expanded_conv,): {"split_expansion": 2}}
    _, end_points = mobilenet.mobilenet_base(images(1, 32, 32, 3), conv_defs, scope="Mobilenet")
    assert types().count("Conv2D") == 1 + 1 + 3 * 3
    assert "layer_3/expand_part_1_output" in end_points
    mobilenet.mobilenet_base(images(1, 32, 32, 3), V2_DEF, final_endpoint="layer_3", scope="plain")
    assert not [name for name in variable_names() if name.startswith("plain") and "part" in name]


def test_layers_of_any_function():
    """A layer is any function of a feature map; its ops named `output` are end points."""

    def doubled(net, stride, scale):
        assert stride == 1
        with tf.name_scope("doubled"):
            tf.identity(net, "before_output")
            return tf.multiply(net, scale, "after")

    conv_defs = {"spec": [mobilenet.op(doubled, scale=2.0), mobilenet.op(doubled, scale=3.0)]}
    net = images(1, 2, 2, 3)
    result, end_points = mobilenet.mobilenet_base(net, conv_defs)
    assert list(end_points) == [
        *("layer_1", "layer_2", "layer_1/before_output", "layer_2/before_output")
    ]
    assert result.op.name == "Mobilenet/doubled_1/after"
    before, after = evaluate([net, result])
    assert (after == before * 6).all()


@pytest.mark.parametrize(
    ("output_stride", "use_explicit_padding"), [(1, False), (2, True), (4, False), (8, True)]
)
def test_output_stride(output_stride, use_explicit_padding):
    """Each pixel of the usual map is in the denser one; 1x1 kernels are not dilated."""
    inputs = images(1, 17, 25, 3)
    keywords = {"use_explicit_padding": use_explicit_padding, "scope": "Mobilenet"}
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        usual, _ = mobilenet.mobilenet_base(inputs, TINY, **keywords)
        dense, _ = mobilenet.mobilenet_base(inputs, TINY, output_stride=output_stride, **keywords)
    assert dense.shape.as_list()[1:3] == [16 // output_stride + 1, 24 // output_stride + 1]
    usual, dense = evaluate([usual, dense])
    step = 8 // output_stride
    assert reference.relative_difference(dense[:, ::step, ::step], usual) < 1e-5


@pytest.mark.parametrize("multiplier", [-0.5, float("nan"), float("inf"), "1"])
def test_bad_multiplier(multiplier):
    """A multiplier that scales nothing is named."""
    message = f"^depth_multiplier must be a number of at least 0, got {multiplier!r}"
    with pytest.raises(ValueError, match=message):
        mobilenet.mobilenet_base(images(1, 8, 8, 3), TINY, multiplier=multiplier)


def test_global_pool():
    """Each way to pool gives the average, of a map of known or unknown size."""
    value = reference.images([2, 5, 7, 3])
    unknown = tf.placeholder_with_default(value, [None, None, None, 3])
    pooled = [
        mobilenet.global_pool(tf.constant(value)),
        mobilenet.global_pool(tf.constant(value), use_reduce_mean_for_pooling=True),
        mobilenet.global_pool(unknown),
    ]
    assert [net.op.type for net in pooled] == ["AvgPool", "Mean", "Mean"]
    assert [net.shape.as_list()[1:] for net in pooled] == 3 * [[1, 1, 3]]
    for actual in evaluate(pooled):
        assert reference.relative_difference(actual, value.mean((1, 2), keepdims=True)) < 1e-5


def test_global_pool_by_another_op():
    """The op may be another one; one that takes tensors as kernel takes unknown sizes."""
    value = reference.images([2, 5, 7, 3])
    known = mobilenet.global_pool(tf.constant(value), pool_op=tf.nn.max_pool2d)
    assert (evaluate(known) == value.max((1, 2), keepdims=True)).all()

    def largest(net, ksize, strides, padding):
        assert isinstance(ksize, tf.Tensor)
        return tf.raw_ops.MaxPoolV2(input=net, ksize=ksize, strides=strides, padding=padding)

    unknown = tf.placeholder_with_default(value, [None, None, None, 3])
    actual = evaluate(mobilenet.global_pool(unknown, pool_op=largest))
    assert (actual == value.max((1, 2), keepdims=True)).all()


@pytest.mark.parametrize("is_training", [None, False, True])
def test_mode_in_the_training_scope(is_training):
    """Without a mode the arg scope sets none for normalization and dropout."""
    scope = mobilenet.training_scope(is_training=is_training)
    for function in (slim.batch_norm, slim.dropout):
        keywords = scope[slim.arg_scope_func_key(function)]
        assert ("is_training" in keywords) == (is_training is not None)
        assert keywords.get("is_training") is is_training


def test_glorot_initialization():
    """With a negative deviation weights are uniform within Glorot's bound, else normal."""
    with slim.arg_scope(mobilenet.training_scope(stddev=-1.0)):
        slim.conv2d(images(1, 4, 4, 16), 32, [1, 1])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = abs(sess.run(tf.global_variables()[0]))
    bound = (6 / (16 + 32)) ** 0.5
    assert 0.95 * bound < values.max() <= bound
