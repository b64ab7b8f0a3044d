"""What TensorFlow 1 took and TensorFlow 2 refuses, though it means the same."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import names


@pytest.fixture
def old():
    """TensorFlow as an old program sees it."""
    return names.find("tensorflow")


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        pytest.param((None, "named", ["tensor"]), "named/", id="default name"),
        pytest.param(("own", "named", ["tensor"]), "own/", id="name"),
        pytest.param(("own", ["tensor"]), "own/", id="values in its place"),
        pytest.param(("own",), "own/", id="only a name"),
        pytest.param((None, "named", [np.float32(1), None]), "named/", id="numbers among values"),
    ],
)
def test_name_scope(arguments, scope, old):
    """A scope has the name that is given, or else the default, wherever the values stand."""
    values = {"tensor": tf.constant(1.0)}
    given = [[values.get(v, v) for v in a] if type(a) is list else a for a in arguments]
    with old.name_scope(*given) as name:
        assert name == scope
        assert old.constant(1.0).op.name.startswith(scope)


@pytest.mark.parametrize("size", [6, np.int32(6), np.float64(6.0), 6.0, 12 / 2])
def test_sizes(size, old):
    """A whole number is a size, whatever its type."""
    assert old.placeholder(tf.float32, [None, size]).shape.as_list() == [None, 6]
    assert old.get_variable("weights", (size, 2)).shape.as_list() == [6, 2]
    assert old.get_variable(name="bias", shape=[size]).shape.as_list() == [6]


def test_fractions_are_no_sizes(old):
    """Half a size stays TensorFlow's error."""
    with pytest.raises(TypeError, match=r"2\.5"):
        old.placeholder(tf.float32, [2.5])


@pytest.mark.parametrize(
    ("layer", "arguments", "shape"),
    [
        pytest.param("dense", (np.int64(3),), [1, 8, 8, 3], id="units"),
        pytest.param("conv2d", (np.int64(4), np.int32(3)), [1, 6, 6, 4], id="kernel"),
        pytest.param("conv2d", (4, [np.int64(3), 1]), [1, 6, 8, 4], id="in a list"),
        ("max_pooling2d", (np.int64(2), np.int64(2)), [1, 4, 4, 3]),
    ],
)
def test_layers_take_integers_of_numpy(layer, arguments, shape, old):
    """`tf.layers` takes the integers that were Python's in Python 2."""
    outputs = getattr(old.layers, layer)(tf.zeros([1, 8, 8, 3]), *arguments)
    assert outputs.shape.as_list() == shape


def test_programs_that_were_being_moved(old):
    """`tensorflow.compat.v1` has the names of TensorFlow 1, too."""
    moved = names.find("tensorflow.compat.v1")
    assert moved.placeholder is old.placeholder
    assert moved.layers.dense(tf.zeros([1, 2]), 3).shape.as_list() == [1, 3]
    assert names.find("tensorflow.compat").v1 is moved
    assert names.find("tensorflow.compat.v1.nn").rnn_cell.BasicLSTMCell
    assert names.find("tensorflow.compat.v2").function
