"""Layers as values."""

import numpy as np
import tensorflow.compat.v1 as tf

from nets.parts import branches


def double(net):
    """A layer without variables."""
    return 2 * net


def increment(net):
    """Another one, which does not commute with the first."""
    return net + 1


def evaluate(tensor):
    """Returns the value of a tensor, with freshly initialized variables."""
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensor)


def test_chain_applies_layers_in_order():
    """The second layer of a chain gets what the first one made."""
    assert evaluate(branches.chain(double, increment)(tf.constant(3.0))) == 7.0


def test_concat_puts_channels_side_by_side():
    """Each layer gets the same input; their channels follow one another."""
    net = tf.constant([[[[1.0, 2.0]]]])
    np.testing.assert_array_equal(
        evaluate(branches.concat(double, increment)(net)), [[[[2.0, 4.0, 2.0, 3.0]]]]
    )


def test_scopes_are_derived_from_branch_place_and_kernel():
    """A convolution's scope names its branch, its place in it and its kernel."""
    block = branches.branches(
        branches.conv("", 1, 1, 2),
        branches.chain(branches.avg_pool(), branches.conv("0b", 1, 7, 3)),
        branches.max_pool(stride=1, padding="SAME"),
    )
    net = branches.in_scope("Mixed", block)(tf.zeros([2, 5, 5, 4]))
    assert net.shape.as_list() == [2, 5, 5, 2 + 3 + 4]
    assert {v.op.name: v.shape.as_list() for v in tf.trainable_variables(".*weights")} == {
        "Mixed/Branch_0/Conv2d_1x1/weights": [1, 1, 4, 2],
        "Mixed/Branch_1/Conv2d_0b_1x7/weights": [1, 7, 4, 3],
    }
