"""What I3D and S3D-G are made of, by arithmetic."""

import re

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets import i3d_utils
from nets.i3d_utils import conv3d_spatiotemporal, inception_block_v1_3d
from tests.nets import reference
from tests.nets.values import evaluate, evaluate_initial, images, variable_names


@pytest.mark.parametrize("kernel_size", [[3, 3, 3], [5, 1, 3], [1, 3, 3]])
def test_separable_convolution_starts_without_looking_along_time(kernel_size):
    """A new separable convolution is the one in space alone."""
    inputs = images(1, 6, 8, 8, 4)
    frames, height, width = kernel_size
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        both = conv3d_spatiotemporal(inputs, 5, kernel_size, separable=True, scope="conv")
        space = slim.conv3d(inputs, 5, [1, height, width], activation_fn=None, scope="conv")
    assert any("temporal" in name for name in variable_names()) is (frames > 1)
    both, space = evaluate_initial([both, space])
    np.testing.assert_allclose(both, space, rtol=1e-5, atol=1e-6)


def test_separable_convolution_is_one_over_space_and_then_one_over_time():
    """With values of its own each of the two has its kernel, bias and activation."""
    inputs = images(1, 6, 8, 8, 4)
    net = conv3d_spatiotemporal(
        inputs, 5, [3, 3, 3], activation_fn=tf.nn.relu, separable=True, scope="conv"
    )
    weights = {v.op.name: v for v in tf.trainable_variables()}
    wanted = inputs
    for scope in ("conv", "conv/temporal"):
        wanted = tf.nn.conv3d(wanted, weights[f"{scope}/weights"], [1] * 5, "SAME")
        wanted = tf.nn.relu(wanted + weights[f"{scope}/biases"])
    net, wanted = evaluate([net, wanted])
    assert np.ptp(net) > 0
    assert reference.relative_difference(net, wanted) < 1e-5


@pytest.mark.parametrize(
    ("stride", "shape"), [(2, [1, 3, 4, 4, 5]), ([1, 2, 4], [1, 6, 4, 2, 5])], ids=["one", "three"]
)
@pytest.mark.parametrize("separable", [True, False])
def test_strides_in_space_and_time(stride, shape, separable):
    """A stride is taken along all three axes, whether the convolution is split or not."""
    net = conv3d_spatiotemporal(
        images(1, 6, 8, 8, 4), 5, [3, 3, 3], stride=stride, separable=separable, scope="conv"
    )
    assert net.shape.as_list() == shape


def test_arguments_of_convolutions():
    """What an arg scope says of `conv3d` is not said of `conv3d_spatiotemporal`; a regularizer is
    one of the weights over space and of those over time.
    """
    inputs, regularizer = images(1, 6, 8, 8, 4), slim.l2_regularizer(1.0)
    with slim.arg_scope(
        [slim.conv3d], normalizer_fn=slim.batch_norm, weights_regularizer=regularizer
    ):
        net = conv3d_spatiotemporal(inputs, 5, [3, 3, 3], scope="conv")
    assert variable_names() == ["conv/weights", "conv/biases"]
    assert net.op.type == "BiasAdd"
    assert tf.losses.get_regularization_losses() == []
    conv3d_spatiotemporal(
        inputs, 5, [3, 3, 3], weights_regularizer=regularizer, separable=True, scope="two"
    )
    assert len(tf.losses.get_regularization_losses()) == 2


def test_center_initializer():
    """Each channel of the frame in the middle is taken as it is; further channels are zero."""
    initialize = i3d_utils.center_initializer()
    with tf.Session() as sess:
        weights = sess.run(initialize(tf.TensorShape([5, 1, 1, 2, 3]), tf.float32))
    wanted = np.zeros([5, 1, 1, 2, 3])
    wanted[2, 0, 0, 0, 0] = wanted[2, 0, 0, 1, 1] = 1
    np.testing.assert_array_equal(weights, wanted)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 1, 1, 4],), r"shape must be \[frames, .*, got \[3, 1, 1, 4\]"),
        (([3, 3, 1, 4, 4],), r"shape must .*, got \[3, 3, 1, 4, 4\]"),
        (([3, 1, 1, 4, 4], tf.int32), "dtype must be a floating .*int32"),
    ],
)
def test_center_initializer_rejects(arguments, message):
    """A shape or type that the initializer is not for is named."""
    with pytest.raises(ValueError, match=f"^{message}"):
        i3d_utils.center_initializer()(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda net: conv3d_spatiotemporal(net, 5, [3, 3]), "kernel_size must .*, got [3, 3]"),
        (
            lambda net: conv3d_spatiotemporal(net, 5, [3, 3, 3], [2]),
            "stride must have three numbers, got [2]",
        ),
        (
            lambda net: i3d_utils.reduced_kernel_size_3d(net[0], [2, 7, 7]),
            "input_tensor must have rank 5, got shape (6, 8, 8, 4",
        ),
        (
            lambda net: i3d_utils.reduced_kernel_size_3d(net, [7, 7]),
            "kernel_size must have three numbers, got [7, 7]",
        ),
    ],
)
def test_rejects(call, message):
    """Images, and kernels or strides that are not of frames, height and width, are named."""
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match=f"^{pattern}"):
        call(images(1, 6, 8, 8, 4))


def test_reduced_kernel_size():
    """A kernel shrinks to a known size of the video, and stays where one size is unknown."""
    for shape, kernel in (
        ([1, 8, 14, 14, 3], [2, 7, 7]),
        ([1, 1, 14, 4, 3], [1, 7, 4]),
        ([None, 8, None, 4, 3], [2, 7, 7]),
    ):
        video = tf.placeholder(tf.float32, shape)
        assert i3d_utils.reduced_kernel_size_3d(video, [2, 7, 7]) == kernel


def test_block_is_four_branches_side_by_side():
    """Channels follow one another: 1x1; 1x1 and 3x3x3, twice; max pool and 1x1."""
    inputs = images(1, 3, 5, 5, 4)
    net = inception_block_v1_3d(inputs, 2, 3, 5, 4, 6, 7, scope="Mixed")
    weights = {v.op.name: v for v in tf.trainable_variables()}

    def conv(net, scope, activation_fn=tf.nn.relu):
        net = tf.nn.conv3d(net, weights[f"Mixed/{scope}/weights"], [1] * 5, "SAME")
        return activation_fn(net + weights[f"Mixed/{scope}/biases"])

    pooled = tf.nn.max_pool3d(inputs, [1, 3, 3, 3, 1], [1] * 5, "SAME")
    branches = [
        conv(inputs, "Branch_0/Conv2d_0a_1x1"),
        *(
            conv(
                conv(inputs, f"Branch_{number}/Conv2d_0a_1x1"),
                f"Branch_{number}/Conv2d_0b_3x3",
                tf.identity,
            )
            for number in (1, 2)
        ),
        conv(pooled, "Branch_3/Conv2d_0b_1x1"),
    ]
    assert [branch.shape.as_list()[-1] for branch in branches] == [2, 5, 6, 7]
    net, wanted = evaluate([net, tf.concat(branches, axis=4)])
    assert reference.relative_difference(net, wanted) < 1e-5


def test_gating_function_gates_the_end_of_each_branch():
    """A gating function is called with the end of each branch and its scope."""
    scopes = []

    def gating(net, scope):
        scopes.append(scope)
        return 0 * net

    net = inception_block_v1_3d(
        images(1, 3, 5, 5, 4), 2, 3, 5, 4, 6, 7, self_gating_fn=gating, scope="Mixed"
    )
    assert scopes == ["Conv2d_0a_1x1", "Conv2d_0b_3x3", "Conv2d_0b_3x3", "Conv2d_0b_1x1"]
    assert not evaluate(net).any()
