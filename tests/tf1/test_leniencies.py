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
    ("arguments", "scope"),
    [
        pytest.param((None, "named", ["tensor"]), "named/", id="default name"),
        pytest.param(("own", "named", ["tensor"]), "own/", id="name"),
        pytest.param(("own", ["tensor"]), "own/", id="values in its place"),
        pytest.param(("own",), "own/", id="only a name"),
        pytest.param((None, "named", [np.float32(1), None]), "named/", id="numbers among values"),
    ],
)
def test_name_scope(arguments, scope):
    """A scope has the name that is given, or else the default, wherever the values stand."""
    values = {"tensor": tf.constant(1.0)}
    given = [[values.get(v, v) for v in a] if type(a) is list else a for a in arguments]
    with old.name_scope(*given) as name:
        assert name == scope
        assert old.constant(1.0).op.name.startswith(scope)


@pytest.mark.parametrize("size", [6, np.int32(6), np.float64(6.0), 6.0, 12 / 2])
def test_sizes(size):
    """A whole number is a size, whatever its type."""
    assert old.placeholder(tf.float32, [None, size]).shape.as_list() == [None, 6]
    assert old.get_variable("weights", (size, 2)).shape.as_list() == [6, 2]
    assert old.get_variable(name="bias", shape=[size]).shape.as_list() == [6]


@pytest.mark.filterwarnings("ignore:`tf.nn.rnn_cell")
@pytest.mark.parametrize("name", ["BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell"])
@pytest.mark.parametrize("place", ["nn.rnn_cell", "contrib.rnn"])
def test_units_of_cells(name, place):
    """Half the units of a layer are a cell's number of units, though a division made a float."""
    cell = getattr(names.find(f"tensorflow.{place}"), name)(32 / 2)
    output, _ = old.nn.dynamic_rnn(cell, tf.zeros([2, 3, 4]), dtype=tf.float32)
    assert output.shape.as_list() == [2, 3, 16]
    assert isinstance(cell, old.nn.rnn_cell.RNNCell)
    assert type(cell) is getattr(old.nn.rnn_cell, name)


def test_fractions_are_no_sizes():
    """Half a size stays TensorFlow's error."""
    with pytest.raises(TypeError, match=r"2\.5"):
        old.placeholder(tf.float32, [2.5])


def test_programs_that_were_being_moved():
    """`tensorflow.compat.v1` has the names of TensorFlow 1, too."""
    moved = names.find("tensorflow.compat.v1")
    assert moved.placeholder is old.placeholder
    assert moved.layers.dense(tf.zeros([1, 2]), 3).shape.as_list() == [1, 3]
    assert names.find("tensorflow.compat").v1 is moved
    assert names.find("tensorflow.compat.v1.nn").rnn_cell.BasicLSTMCell
    assert names.find("tensorflow.compat.v2").function


def test_variable_scopes():
    """So does a variable scope; an unnamed one is numbered where its default is taken.

    The values come first in the scopes of TensorFlow 0.x.
    """
    x = tf.zeros([1])
    with old.variable_scope(None, "name", [x]) as first, old.variable_scope("in", values=[x]):
        assert tf.get_variable("v", []).op.name == "name/in/v"
    with old.variable_scope(None, "name", [x]) as second:
        assert (first.name, second.name) == ("name", "name_1")
    for name, expected in ((None, "mine"), ("a", "a")):
        for function in (old.op_scope, old.variable_op_scope):
            with tf.Graph().as_default(), function([1.0], name, "mine"):
                assert tf.constant(1.0, name="c").op.name == f"{expected}/c"


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
    assert old.layers.dense(x, number(3)).shape.as_list() == [4, 3]
    images = tf.zeros([1, 5, 5, 3])
    assert old.layers.conv2d(images, number(2), [number(3), 1]).shape.as_list() == [1, 3, 5, 2]
    assert old.layers.max_pooling2d(images, number(2), number(2)).shape.as_list() == [1, 2, 2, 3]
    assert slim.fully_connected(x, number(7)).shape.as_list() == [4, 7]
    assert slim.conv2d(images, number(2), 3).shape.as_list() == [1, 5, 5, 2]
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


def test_averages_of_losses_of_regularizers():
    """An average starts at 0 and follows a loss that is only named in the collection."""
    tf.get_variable(
        "weights", [2], initializer=tf.ones_initializer(), regularizer=slim.l2_regularizer(3.0)
    )
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    average = old.train.ExponentialMovingAverage(0.5)
    update = average.apply([*losses, *tf.trainable_variables()])
    assert average.average_name(losses[0]) == average.average(losses[0]).op.name
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)  # 3 * (1 + 1) / 2, half of which
        assert session.run(average.average(losses[0])) == 1.5
    assert isinstance(average, tf.train.ExponentialMovingAverage)


@pytest.mark.parametrize(
    "base",
    [
        lambda: old.keras.layers.Conv2D,
        lambda: old.layers.Conv2D,
        lambda: names.find("tensorflow.python.layers.convolutional").Conv2D,
    ],
    ids=["keras", "layers", "file"],
)
def test_layers_that_convolve_by_their_own_weights(base):
    """`_convolution_op` convolves inputs by the weights that a layer gives it."""

    class Doubled(base()):
        def call(self, inputs):
            return self._convolution_op(inputs, 2 * self.kernel)

    images = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    result = Doubled(1, 2, kernel_initializer="ones", use_bias=False)(images)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(result)[0, :, :, 0]
    # Sums of squares of four, twice.
    np.testing.assert_allclose(found, 2 * np.array([[8, 12], [20, 24]]))


def test_flush():
    """`tf.logging.flush` writes what was logged; other names of `tf.logging` are TensorFlow's."""
    assert old.logging.flush() is None
    assert names.find("tensorflow.logging").flush is old.logging.flush
    assert old.logging.info is tf.logging.info
