"""The blocks that MobileNets are made of."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import mobilenet_v1
from nets.mobilenet import conv_blocks
from tests.nets import reference
from tests.nets.values import evaluate, images, variable_names


def test_expand_input_by_factor():
    """A block widens to a multiple of 8 channels at least 90% of what was asked for."""
    assert conv_blocks.expand_input_by_factor(3.67)(num_inputs=24) == 88
    assert conv_blocks.expand_input_by_factor(1, divisible_by=1)(num_inputs=13, stride=2) == 13
    assert conv_blocks.expand_input_by_factor(6) == conv_blocks.expand_input_by_factor(6)


@pytest.mark.parametrize("use_explicit_padding", [False, True])
def test_split_separable_conv2d_is_a_layer_of_mobilenet_v1(use_explicit_padding):
    """On the same variables the part gives the two end points of the whole network."""
    layers = [
        mobilenet_v1.Conv([3, 3], stride=2, depth=16),
        mobilenet_v1.DepthSepConv([3, 3], stride=2, depth=32),
    ]
    padding, endpoints = {"use_explicit_padding": use_explicit_padding}, {}
    with (
        slim.arg_scope(mobilenet_v1.mobilenet_v1_arg_scope(is_training=False)),
        slim.arg_scope([conv_blocks.split_separable_conv2d], normalizer_fn=slim.batch_norm),
        tf.variable_scope("MobilenetV1", reuse=tf.AUTO_REUSE) as scope,
    ):
        net = images(1, 33, 20, 3)
        _, whole = mobilenet_v1.mobilenet_v1_base(
            net, "Conv2d_1_pointwise", conv_defs=layers, scope=scope, **padding
        )
        net = conv_blocks.split_separable_conv2d(
            whole["Conv2d_0"], 32, scope="Conv2d_1", stride=2, endpoints=endpoints, **padding
        )
    assert net is endpoints["Conv2d_1_pointwise"]
    part, whole = evaluate([endpoints, {key: whole[key] for key in endpoints}])
    for name, value in part.items():
        np.testing.assert_array_equal(value, whole[name])


@pytest.mark.parametrize(
    ("num_inputs", "num_outputs", "num_ways", "shapes"),
    [
        pytest.param(16, 32, 2, [[1, 1, 8, 16], [1, 1, 8, 16]], id="halves"),
        pytest.param(24, 16, 2, [[1, 1, 16, 8], [1, 1, 8, 8]], id="unequal"),
        pytest.param(8, 64, 2, [[1, 1, 8, 64]], id="too-few-inputs"),
        pytest.param(64, 8, 2, [[1, 1, 64, 8]], id="too-few-outputs"),
        pytest.param(12, 20, 1, [[1, 1, 12, 20]], id="one"),
    ],
)
def test_split_conv(num_inputs, num_outputs, num_ways, shapes):
    """Each part of the inputs is convolved to its part of the outputs, and nothing else."""
    net = images(1, 2, 3, num_inputs)
    output = conv_blocks.split_conv(net, num_outputs, num_ways, "expand", activation_fn=None)
    kernels = [v for v in tf.global_variables() if v.op.name.endswith("weights")]
    assert [kernel.shape.as_list() for kernel in kernels] == shapes
    if len(kernels) > 1:
        assert variable_names()[0] == "expand_part_0/weights"
        assert output.op.name == "expand_concat"
    biases = [v for v in tf.global_variables() if v.op.name.endswith("biases")]
    net, output, kernels, biases = evaluate([net, output, kernels, biases])
    # One matrix with the parts on its diagonal.
    whole = np.zeros([num_inputs, num_outputs])
    row = column = 0
    for kernel in kernels:
        rows, columns = kernel.shape[2:]
        whole[row : row + rows, column : column + columns] = kernel[0, 0]
        row, column = row + rows, column + columns
    np.testing.assert_allclose(output, net @ whole + np.concatenate(biases), rtol=1e-4, atol=1e-5)


def test_split_conv_of_channels_that_do_not_divide():
    """Channels that cannot be split into multiples are named."""
    message = r"channels to split must be a multiple of divisible_by \(8\), got 20"
    with pytest.raises(ValueError, match=message):
        conv_blocks.split_conv(images(1, 2, 2, 20), 32, 2, "expand")


def block(net, num_outputs, **keywords):
    """Builds a linear block without normalization."""
    with slim.arg_scope([slim.conv2d, slim.separable_conv2d], activation_fn=None):
        return conv_blocks.expanded_conv(net, num_outputs, **keywords)


@pytest.mark.parametrize(
    ("location", "channels"), [("input", 8), ("expansion", 24), ("output", 16), (None, None)]
)
def test_depthwise_location(location, channels):
    """The depthwise convolution stands where it is asked for, on as many channels."""
    endpoints = {}
    net = block(
        images(1, 8, 8, 8),
        16,
        expansion_size=24,
        stride=2,
        depthwise_location=location,
        endpoints=endpoints,
    )
    kernels = [v for v in tf.global_variables() if v.op.name.endswith("depthwise_weights")]
    assert [kernel.shape.as_list()[2] for kernel in kernels] == ([channels] if channels else [])
    assert net.shape.as_list() == [1, *(2 * [4 if location else 8]), 16]
    assert ("depthwise_output" in endpoints) == (location is not None)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("num_outputs", [8, 16])
def test_residual(stride, num_outputs):
    """The input is added where the output has its shape; `residual=False` never does so."""
    net = images(1, 6, 6, 8)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        keywords = {"stride": stride, "scope": "block"}
        plain = block(net, num_outputs, residual=False, **keywords)
        added = block(net, num_outputs, **keywords)
        own = block(
            net,
            num_outputs,
            residual=lambda input_tensor, output_tensor: 2 * output_tensor,
            **keywords,
        )
    net, plain, added, own = evaluate([net, plain, added, own])
    fits = stride == 1 and num_outputs == 8
    np.testing.assert_allclose(added, plain + net if fits else plain, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own, 2 * plain, rtol=1e-6)


def test_expansion_transform():
    """The transform gets the widened map and the input, and the projection what it returns."""
    seen = {}

    def transform(expansion_tensor, input_tensor):
        seen.update(expansion=expansion_tensor, input=input_tensor)
        return tf.zeros_like(expansion_tensor)

    net = block(images(1, 4, 4, 8), 8, expansion_transform=transform, residual=False)
    assert (seen["expansion"].shape[3], seen["input"].shape[3]) == (48, 8)
    [biases] = [v for v in tf.global_variables() if v.op.name.endswith("project/biases")]
    net, biases = evaluate([net, biases])
    np.testing.assert_allclose(net, np.broadcast_to(biases, [1, 4, 4, 8]), rtol=1e-6)


@pytest.mark.parametrize("size", [8, 4])
def test_no_expansion_where_it_does_not_widen(size):
    """A block whose inner size is no larger than its input has two convolutions."""
    block(images(1, 4, 4, 8), 16, expansion_size=size)
    assert not [name for name in variable_names() if "expand/" in name]
    assert tf.global_variables()[-2].shape.as_list() == [1, 1, 8, 16]


@pytest.mark.parametrize(
    ("keywords", "relus"),
    [
        pytest.param({}, 0, id="left-to-the-scope"),
        pytest.param({"inner_activation_fn": tf.nn.relu}, 2, id="inner"),
        pytest.param({"depthwise_activation_fn": tf.nn.relu}, 1, id="depthwise"),
        pytest.param({"project_activation_fn": tf.nn.relu}, 1, id="projection"),
    ],
)
def test_activations(keywords, relus):
    """Each activation is that of its convolution alone."""
    block(images(1, 4, 4, 8), 8, **keywords)
    types = [op.type for op in tf.get_default_graph().get_operations()]
    assert types.count("Relu") == relus


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"depthwise_location": "end"},
            "depthwise_location must be one of None, input, expansion, output, got 'end'",
        ),
        (
            {"use_explicit_padding": True, "padding": "VALID"},
            "padding must be 'SAME' with use_explicit_padding, got 'VALID'",
        ),
    ],
)
def test_expanded_conv_rejects(keywords, message):
    """A bad argument is named with what it may be."""
    with pytest.raises(ValueError, match=message):
        conv_blocks.expanded_conv(images(1, 4, 4, 8), 8, **keywords)


def test_squeeze_excite_of_other_maps():
    """The gate may come from another map, of other size and channels. Windows as large as the map
    are the whole map; smaller ones have gates of their own.
    """
    with tf.variable_scope("other"):
        net, source = images(1, 4, 4, 16), images(1, 2, 2, 24)
        excited = conv_blocks.squeeze_excite(net, squeeze_input_tensor=source)
    assert excited.shape.as_list() == [1, 4, 4, 16]
    shapes = [v.shape.as_list()[2:] for v in tf.global_variables("other.*weights")]
    assert shapes == [[24, 8], [8, 16]]
    value = reference.images([1, 6, 6, 16])
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        whole, large, small, alone = evaluate(
            [conv_blocks.squeeze_excite(tf.constant(value), pool=pool) for pool in (None, 10, 3)]
            + [conv_blocks.squeeze_excite(tf.constant(value[:, :3, :3]))]
        )
    np.testing.assert_allclose(large, whole, rtol=1e-4, atol=1e-6)
    # Corners are aligned: the first pixel has the gate of the first window.
    np.testing.assert_allclose(small[:, 0, 0], alone[:, 0, 0], rtol=1e-4, atol=1e-6)
    assert np.abs(small - whole).max() > 1e-3
