"""Layers as values."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets.parts import branches
from tests.nets.values import evaluate_initial as evaluate


def double(net):
    """A layer without variables."""
    return 2 * net


def increment(net):
    """Another one, which does not commute with the first."""
    return net + 1


def test_chain_and_concat():
    """The second layer of a chain gets what the first one made. Layers side by side get the same
    input, and their channels follow one another; they may be in front of height and width.
    """
    assert evaluate(branches.chain(double, increment)(tf.constant(3.0))) == 7.0
    net = branches.concat(double, increment)(tf.constant([[[[1.0, 2.0]]]]))
    np.testing.assert_array_equal(evaluate(net), [[[[2.0, 4.0, 2.0, 3.0]]]])
    net = branches.branches(double, increment, axis=1)(tf.constant([[[[1.0]], [[2.0]]]]))
    np.testing.assert_array_equal(evaluate(net)[0, :, 0, 0], [2, 4, 2, 3])


def test_steps_up_to_an_end_point():
    """Steps are applied in order, up to and with the one asked for, which is one of them."""
    steps = {"first": double, "second": increment, "third": double}
    net, end_points = branches.run_steps(tf.constant(3.0), steps, "second")
    assert list(end_points) == ["first", "second"]
    assert evaluate([net, end_points["first"]]) == [7.0, 6.0]
    message = "^final_endpoint must be one of first, second, third, got 'fourth'"
    with pytest.raises(ValueError, match=message):
        branches.run_steps(tf.constant(3.0), steps, "fourth")
