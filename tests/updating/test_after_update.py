"""Ops after an update see what it leaves, with both kinds of variables."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.updating import ops_after


@pytest.mark.usefixtures("variable_kind")
def test_ops_see_the_new_value():
    """A function that reads a variable in a usual way gets its value after the update."""
    variable = tf.get_variable("variable", initializer=1.0)
    seen = tf.get_variable("seen", initializer=0.0)
    before = variable * 10.0
    # Slow enough for whatever does not wait to be done before.
    numbers = tf.random_uniform([300, 300])
    slow = tf.reduce_sum(tf.matmul(tf.matmul(numbers, numbers), numbers)) * 0.0
    update = variable.assign(2.0 + slow)
    [noted] = ops_after([update], [lambda: seen.assign(variable + 0.0)])
    with tf.Session() as session:
        for _ in range(5):
            session.run(tf.global_variables_initializer())
            session.run(noted)
            assert session.run([seen, before]) == [2.0, 20.0]


@pytest.mark.usefixtures("variable_kind")
def test_initial_values_are_no_part_of_the_step():
    """A variable that a function makes starts from the old one without the update."""
    variable = tf.get_variable("variable", initializer=1.0)
    update = variable.assign(2.0)
    made = []

    def make():
        made.append(tf.Variable(lambda: variable * 1.0))
        return made[0].assign_add(variable)

    [added] = ops_after([update], [make])
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(made[0].initializer)
        assert session.run(tf.global_variables()) == [1.0, 1.0]
        session.run(added)
        assert session.run(tf.global_variables()) == [2.0, 3.0]


def test_without_functions_nothing_is_made():
    """Nothing to do adds nothing to the graph."""
    update = tf.get_variable("variable", initializer=1.0).assign(2.0)
    before = len(tf.get_default_graph().get_operations())
    assert ops_after([update], []) == []
    assert len(tf.get_default_graph().get_operations()) == before
