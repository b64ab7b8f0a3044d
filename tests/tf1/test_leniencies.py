"""What TensorFlow 1 took, and programs therefore do, still works."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import model_deploy
from model_deploy import slim
from model_deploy.tf1 import names

# As a program of TensorFlow 1 has it.
old = names.root()


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((None, "name", [1.0]), {}, "name/"),
        (("a",), {"values": [1.0]}, "a/"),
        (("a", "name", [1.0]), {}, "a/"),
        ((None,), {"default_name": "name", "values": None}, "name/"),
    ],
)
def test_name_scopes(arguments, options, expected):
    """A scope takes a name, a default and the values that are used in it."""
    with old.name_scope(*arguments, **options) as scope:
        assert scope == expected
        assert tf.constant(1.0, name="c").op.name == f"{expected}c"


def test_variable_scopes():
    """So does a variable scope; an unnamed one is numbered where its default is taken."""
    x = tf.zeros([1])
    with old.variable_scope(None, "name", [x]) as first, old.variable_scope("in", values=[x]):
        assert tf.get_variable("v", []).op.name == "name/in/v"
    with old.variable_scope(None, "name", [x]) as second:
        assert (first.name, second.name) == ("name", "name_1")


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("op_scope", ([1.0], None, "name"), "name/c"),
        ("op_scope", ([1.0], "a", "name"), "a/c"),
        ("variable_op_scope", ([1.0], None, "name"), "name/c"),
        ("variable_op_scope", ([1.0], "a", "name"), "a/c"),
    ],
)
def test_scopes_of_tensorflow_0(function, arguments, expected):
    """The values come first in the scopes of TensorFlow 0.x."""
    with getattr(old, function)(*arguments):
        assert tf.constant(1.0, name="c").op.name == expected


def test_dimensions_of_shapes():
    """`value`, comparisons with None and whole division of TensorFlow 1's dimensions work."""
    unknown, known = tf.Dimension(None), tf.Dimension(6)
    assert unknown.value == None  # noqa: E711 - as programs have it
    assert known.value != None  # noqa: E711
    assert (known // 2, known * 2, known - 1) == (3, 12, 5)
    assert tf.zeros([2, known]).shape.as_list() == [2, 6]
    assert tf.placeholder(tf.float32, [unknown, known]).get_shape().as_list() == [None, 6]


@pytest.mark.parametrize("number", [np.int64, np.int32, int])
def test_numbers_of_numpy(number):
    """Where Python 2 had integers, NumPy's are taken: sizes, counts, steps, units."""
    x = tf.zeros([number(4), 3])
    assert tf.get_variable("v", [number(3)]).shape.as_list() == [3]
    assert old.train.batch([x], number(2)).shape.as_list() == [2, 4, 3]
    queue = old.train.shuffle_batch([x], number(2), number(8), number(1), num_threads=number(1))
    assert queue.shape.as_list() == [2, 4, 3]
    assert tf.one_hot([1], number(5)).shape.as_list() == [1, 5]
    assert len(tf.split(x, number(2))) == 2
    assert slim.fully_connected(x, number(7)).shape.as_list() == [4, 7]
    assert slim.conv2d(tf.zeros([1, 5, 5, 3]), number(2), 3).shape.as_list() == [1, 5, 5, 2]
    rate = old.train.exponential_decay(0.5, tf.constant(20), number(10), 0.5)
    config = model_deploy.DeploymentConfig(num_clones=number(2), clone_on_cpu=True)
    assert config.clone_scope(number(1)) == "clone_1"
    with tf.Session() as session:
        assert session.run(rate) == pytest.approx(0.125)


def test_arguments_under_their_old_names():
    """`keep_dims`, `dim`, `dimension`, `squeeze_dims`, `keep_prob` and the like."""
    x = tf.constant([[1.0, 3.0, 2.0]])
    results = {
        "sum": old.reduce_sum(x, reduction_indices=1, keep_dims=True),
        "argmax": old.argmax(x, dimension=1),
        "softmax": old.reduce_sum(old.nn.softmax(x, dim=-1)),
        "expanded": old.shape(old.expand_dims(x, dim=1)),
        "squeezed": old.squeeze(x, squeeze_dims=[0]),
        "kept": old.nn.dropout(x, keep_prob=1.0),
        "to_float": old.to_float(old.to_int32(x)),
        "resized": old.shape(old.image.resize_images(tf.zeros([8, 8, 3]), [4, 4])),
    }
    expected = {
        "sum": [[6]],
        "argmax": [1],
        "softmax": 1,
        "expanded": [1, 1, 3],
        "squeezed": [1, 3, 2],
        "kept": [[1, 3, 2]],
        "to_float": [[1, 3, 2]],
        "resized": [4, 4, 3],
    }
    with tf.Session() as session:
        found = session.run(results)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
