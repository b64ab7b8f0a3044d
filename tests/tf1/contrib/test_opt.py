"""`tf.contrib.opt`: averages, and steps by arithmetic."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import contrib
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


@pytest.mark.parametrize("use_resource", [False, True])
def test_decay_is_no_part_of_the_gradient(use_resource):
    """Variables shrink by the share, then go by the gradient that they had before; of a table the
    rows in that gradient shrink, once each.
    """
    with tf.variable_scope("", use_resource=use_resource):
        start = tf.constant_initializer(4.0)
        dense, table = (tf.get_variable(name, [3, 1], initializer=start) for name in "dt")
    loss = tf.reduce_sum(tf.square(dense)) + tf.reduce_sum(tf.gather(table, [1, 1]))
    optimizer = contrib.opt.MomentumWOptimizer(0.5, learning_rate=0.25, momentum=0.0)
    both = optimizer.minimize(loss)
    kind = contrib.opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    one = kind(0.5, 0.25).minimize(loss, decay_var_list=[table])
    with _session() as session:
        session.run(both)  # 4 - 2 - 0.25 * 8, and 4 - 2 - 0.25 * 2
        found = session.run([dense, table])
        np.testing.assert_array_equal(np.squeeze(found), [[0, 0, 0], [4, 1.5, 4]])
        session.run(one)
        found = session.run([dense, table])
        np.testing.assert_array_equal(np.squeeze(found), [[0, 0, 0], [4, 0.25, 4]])
    adam = contrib.opt.AdamWOptimizer(0.5, learning_rate=0.25)
    variable = tf.get_variable("a", [], initializer=start)
    train = adam.minimize(tf.square(variable))
    with _session() as session:
        session.run(train)
        assert session.run(variable) == pytest.approx(4 - 2 - 0.25)


def test_scipy_finds_minima():
    """Within bounds, under constraints, and with what is fed; callbacks see each loss."""
    x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())
    y = tf.get_variable("y", [], tf.float64, initializer=tf.zeros_initializer())
    goal = tf.placeholder(tf.float32, [2])
    loss = tf.reduce_sum(tf.square(x - goal)) + tf.cast(tf.square(y - 1), tf.float32)
    scipy = contrib.opt.ScipyOptimizerInterface
    free = scipy(loss, var_to_bounds={x: (-np.inf, [2.0, 9.0])}, options={"maxiter": 50})
    bound = scipy(
        loss, [x], equalities=[x[0] + x[1] - 1], inequalities=[x[1] - x[0]], method="SLSQP"
    )
    losses, steps = [], []
    with _session() as session:
        free.minimize(session, {goal: [3.0, 4.0]}, [loss], steps.append, losses.append)
        found = session.run([x, y])
        np.testing.assert_allclose(np.hstack(found), [2, 4, 1], atol=1e-4)
        assert losses[0] == 26
        assert steps[-1].shape == (3,)
        with session.as_default():
            bound.minimize(feed_dict={goal: [3.0, 1.0]})
        np.testing.assert_allclose(session.run(x), [0.5, 0.5], atol=1e-4)
    with pytest.raises(ValueError, match="such as SLSQP, got 'L-BFGS-B'"):
        scipy(loss, equalities=[y])
    with pytest.raises(ValueError, match="without jac, which is set here"):
        scipy(loss, jac=True)
