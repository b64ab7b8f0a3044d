"""Random ops are functions of seed and step, not of what their process did before."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import create_clones, random_by_step, slim
from tests.goldens import LogicalDevices, cpu_config

DRAWS = {
    "dropout": lambda: slim.dropout(tf.ones([200]), 0.5),
    "uniform": lambda: tf.identity(tf.random_uniform([200])),
    "integers": lambda: tf.identity(tf.random_uniform([200], 0, 1000, tf.int32)),
    "normal": lambda: tf.identity(tf.random_normal([200])),
    "truncated": lambda: tf.identity(tf.truncated_normal([200])),
    "classes": lambda: tf.identity(tf.random.categorical(tf.zeros([1, 9]), 200)),
}


def draw(values, steps):
    """The values at each step, in a session of their own."""
    step = tf.train.get_global_step()
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        drawn = []
        for number in steps:
            session.run(step.initializer)
            session.run(tf.assign_add(step, number))
            drawn.append(session.run(values))
    return drawn


@pytest.mark.parametrize("name", DRAWS)
def test_the_step_decides(name, variable_kind):
    """The same step draws the same numbers, whatever was drawn before; another step, others."""
    tf.train.get_or_create_global_step()
    values = random_by_step(DRAWS[name])()
    first, second, again = draw(values, [3, 4, 3])
    np.testing.assert_array_equal(first, again)
    assert (first != second).any()
    np.testing.assert_array_equal(draw(values, [4])[0], second)


def test_distributions():
    """The numbers are those of the op's distribution: its mean, its bounds, its share of zeros."""
    tf.train.get_or_create_global_step()

    @random_by_step
    def model_fn():
        return [
            slim.dropout(tf.ones([100_000]), 0.75),
            tf.identity(tf.random_uniform([100_000], 5, 9, tf.int64)),
            tf.identity(tf.random_normal([100_000], 3, 2)),
        ]

    [[kept, integers, normal]] = draw(model_fn(), [7])
    assert set(np.unique(kept)) == {0, np.float32(1 / 0.75)}
    assert np.mean(kept == 0) == pytest.approx(0.25, abs=0.01)
    assert set(np.unique(integers)) == {5, 6, 7, 8}
    assert (np.mean(normal), np.std(normal)) == pytest.approx((3, 2), abs=0.03)


@pytest.mark.parametrize("copy_clones", [False, True])
def test_clones_differ(copy_clones):
    """Each clone draws its own numbers, built by call or by copy."""
    tf.train.get_or_create_global_step()
    config = LogicalDevices(num_clones=2, copy_clones=copy_clones)
    clones = create_clones(config, random_by_step(DRAWS["dropout"]))
    [drawn] = draw([clone.outputs for clone in clones], [1])
    assert (drawn[0] != drawn[1]).any()


def test_initial_values_stay(variable_kind):
    """What a variable starts with does not change."""
    weights = []
    for wrap in (random_by_step, lambda model_fn: model_fn):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            tf.train.get_or_create_global_step()
            variable = wrap(lambda: tf.get_variable("weight", [9]))()
            weights += draw(variable, [0])
    np.testing.assert_array_equal(*weights)


def test_without_a_seed(graph):
    """Ops that have no seed are meant to differ from run to run, and stay."""
    graph.seed = None
    tf.train.get_or_create_global_step()
    values = random_by_step(DRAWS["uniform"])()
    first, again = draw(values, [3, 3])
    assert (first != again).any()


def test_what_stays_is_named(capsys):
    """Ops that have no stateless form are named in one line."""
    tf.train.get_or_create_global_step()
    random_by_step(lambda: tf.random_shuffle(tf.range(9), name="shuffled"))()
    assert capsys.readouterr().err == (
        "not a function of the step: shuffled (a resumed run will differ)\n"
    )
