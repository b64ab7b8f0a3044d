"""`tf.contrib.opt`: averages, and steps by arithmetic."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import opt


def _session():
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


@pytest.mark.parametrize(("sequential", "averages"), [(True, [3.0, 2.0]), (False, None)])
def test_averages_follow_the_values(sequential, averages):
    """A step halves the value; the average goes half the way to it."""
    value = tf.get_variable("value", [], initializer=tf.constant_initializer(4.0))
    optimizer = opt.MovingAverageOptimizer(
        tf.train.GradientDescentOptimizer(0.25), 0.5, sequential_update=sequential
    )
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.square(value), step)
    average = tf.global_variables("value/ExponentialMovingAverage")[0]
    with _session() as session:
        found = []
        for _ in range(2):
            session.run(train)
            found.append(session.run(average))
        assert session.run([value, step]) == [1.0, 2]
    if averages:  # (4 + 2) / 2, (3 + 1) / 2; without an order either is possible
        assert found == averages


def test_swapping_saver(tmp_path):
    """The averages are saved under the names of the variables, the variables under theirs."""
    value = tf.get_variable("value", [2], initializer=tf.constant_initializer(4.0))
    tf.get_variable("other", [], initializer=tf.constant_initializer(7.0), trainable=False)
    optimizer = opt.MovingAverageOptimizer(tf.train.MomentumOptimizer(0.25, 0.0), 0.5)
    with pytest.raises(RuntimeError, match="after apply_gradients"):
        optimizer.swapping_saver()
    train = optimizer.minimize(tf.reduce_sum(tf.square(value)))
    with pytest.raises(ValueError, match="got only value"):
        optimizer.swapping_saver([value])
    assert optimizer.get_slot_names() == ["momentum"]
    assert optimizer.variables() == [optimizer.get_slot(value, "momentum")]
    saver = optimizer.swapping_saver()
    with _session() as session:
        session.run(train)
        path = saver.save(session, str(tmp_path / "model"))
        before = session.run(tf.global_variables())
        session.run(value.initializer)
        saver.restore(session, path)
        for found, expected in zip(session.run(tf.global_variables()), before, strict=True):
            np.testing.assert_array_equal(found, expected)
    reader = tf.train.load_checkpoint(path)
    assert reader.get_tensor("value").tolist() == [3, 3]
    assert reader.get_tensor("value/ExponentialMovingAverage").tolist() == [2, 2]
    assert reader.get_tensor("other") == 7


_START = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
_RATE, _BETA1, _BETA2, _EPSILON = 0.1, 0.9, 0.999, 1e-8


@pytest.mark.parametrize("resource", [False, True])
def test_lazy_adam_leaves_other_rows_alone(resource):
    """Adam's formula for the rows of a step; moments and values of others stay."""
    table = tf.get_variable("table", initializer=tf.constant(_START), use_resource=resource)
    rows = tf.placeholder(tf.int32, [None])
    loss = tf.reduce_sum(tf.square(tf.gather(table, rows)))
    train = opt.LazyAdamOptimizer(_RATE).minimize(loss)
    values, first, second = _START.copy(), np.zeros([3, 2]), np.zeros([3, 2])
    with _session() as session:
        for step, row in enumerate([0, 2, 0], start=1):
            session.run(train, {rows: [row]})
            gradient = 2 * values[row]
            first[row] = _BETA1 * first[row] + (1 - _BETA1) * gradient
            second[row] = _BETA2 * second[row] + (1 - _BETA2) * gradient**2
            rate = _RATE * np.sqrt(1 - _BETA2**step) / (1 - _BETA1**step)
            values[row] -= rate * first[row] / (np.sqrt(second[row]) + _EPSILON)
            np.testing.assert_allclose(session.run(table), values, rtol=1e-5)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_nadam(sparse, resource):
    """Adam with the momentum one step ahead."""
    table = tf.get_variable("table", initializer=tf.constant(_START), use_resource=resource)
    read = tf.gather(table, [0, 1, 2]) if sparse else table
    train = opt.NadamOptimizer(_RATE).minimize(tf.reduce_sum(tf.square(read)))
    values, first, second = _START.copy(), 0, 0
    with _session() as session:
        for step in (1, 2, 3):
            session.run(train)
            gradient = 2 * values
            first = _BETA1 * first + (1 - _BETA1) * gradient
            second = _BETA2 * second + (1 - _BETA2) * gradient**2
            rate = _RATE * np.sqrt(1 - _BETA2**step) / (1 - _BETA1**step)
            ahead = _BETA1 * first + (1 - _BETA1) * gradient
            values = values - rate * ahead / (np.sqrt(second) + _EPSILON)
            np.testing.assert_allclose(session.run(table), values, rtol=1e-5)


def test_clipping():
    """Gradients are scaled to the norm that is given; a norm that is smaller stays."""
    pairs = [(tf.constant([3.0]), "a"), (None, "b"), (tf.constant([4.0]), "c")]
    [(first, _), (none, _), (last, name)] = opt.clip_gradients_by_global_norm(pairs, 1.0)
    assert (none, name) == (None, "c")
    with tf.Session() as session:
        np.testing.assert_allclose(session.run([first, last]), [[0.6], [0.8]])
