"""The operations of cells."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.nasnet import nasnet_utils
from nets.nasnet.operations import Operation


@pytest.fixture(autouse=True)
def channels_last():
    """Maps have their channels last."""
    with slim.arg_scope(
        [nasnet_utils.get_channel_dim, nasnet_utils.get_channel_index], data_format="NHWC"
    ):
        yield


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("separable_7x7_2", ("separable", 7, 2)),
        ("avg_pool_3x3", ("avg_pool", 3, 1)),
        ("max_pool_5x5", ("max_pool", 5, 1)),
        ("none", ("none", 1, 1)),
    ],
)
def test_names(name, expected):
    """A name tells kind, kernel and layers."""
    assert Operation.of(name)[:3] == expected


@pytest.mark.parametrize("name", ["separable_3x3", "avg_pool_3x3_2", "max_pool_3x5", "pool", ""])
def test_unknown_name(name):
    """A name that says nothing is refused."""
    with pytest.raises(ValueError, match=f"^operation must be none or like .*, got '{name}'"):
        Operation.of(name)


@pytest.mark.parametrize(
    ("name", "stride", "filters", "variables"),
    [
        pytest.param("none", 1, 4, 0, id="none"),
        pytest.param("none", 2, 4, 1, id="none-halving"),
        pytest.param("none", 1, 6, 1, id="none-widening"),
        ("max_pool_3x3", 1, 4, 0),
        ("max_pool_3x3", 2, 6, 1),
        ("avg_pool_3x3", 2, 4, 0),
        ("avg_pool_3x3", 1, 6, 1),
        ("separable_3x3_2", 1, 4, 4),
        ("separable_5x5_2", 2, 6, 4),
        ("separable_5x5_3", 2, 6, 6),
    ],
)
def test_operation(name, stride, filters, variables):
    """An operation makes the size and channels asked for, with weights only where it needs them."""
    net = Operation.of(name)(tf.zeros([2, 7, 10, 4]), filters, stride)
    assert net.shape.as_list() == [2, -(-7 // stride), -(-10 // stride), filters]
    assert len(tf.trainable_variables(".*weights")) == variables


def test_nothing_keeps_the_state():
    """No operation, of the right size and width, is the state itself."""
    state = tf.zeros([2, 4, 4, 3])
    assert Operation.of("none")(state, 3, 1) is state
    assert Operation.of("none").keeps
    assert not Operation.of("avg_pool_3x3").keeps


@pytest.mark.parametrize("name", ["none", "max_pool_3x3", "avg_pool_3x3", "separable_3x3_2"])
@pytest.mark.parametrize("filters", [4, 8])
def test_bounded(name, filters):
    """A bounded operation takes and gives nothing beyond 6."""
    net = tf.constant(100 * np.random.RandomState(0).randn(2, 6, 6, 4), tf.float32)
    result = Operation.of(name, bounded=True)(net, filters, 1)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert np.abs(sess.run(result)).max() <= 6
