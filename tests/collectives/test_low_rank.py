"""Gradients as factors of a given rank, with error feedback."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.collectives import Collectives, LowRankSums, numbers_sent, sizes_of
from nets import nets_factory
from tests import harness
from tests.goldens import GOLDENS, LogicalDevices
from tests.local_steps.wide import wide_models


def _train(steps=4, **settings):
    config = LogicalDevices(num_clones=2, num_replicas=2, all_reduce=True, **settings)
    return harness.train_replicas(config, wide_models(), steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "variable_kind"), [(1, "reference"), (8, "resource")], indirect=["variable_kind"]
)
def test_what_was_not_applied_is_in_the_errors(rank, variable_kind):
    """The first step's update and errors add up to that of all-reduce: nothing is lost.

    At rate 0.1 the weights of both differ by 0.1 times what the sum lacks: the mean error.
    """
    del variable_kind
    whole, low = _train(steps=1), _train(steps=1, gradient_rank=rank)
    name = "wide/weights"
    errors = np.mean([run.values[f"low_rank/error/{name}"] for run in low], axis=0)
    for run in low:
        np.testing.assert_allclose(
            run.values[name], whole[0].values[name] + 0.1 * errors, atol=1e-6
        )
        np.testing.assert_array_equal(run.values["hidden/biases"], whole[0].values["hidden/biases"])
    assert np.max(np.abs(errors)) > 1e-5


@pytest.mark.one_mode
@pytest.mark.parametrize("shape", [[6, 4], [4, 6], [2, 3, 4]], ids=str)
def test_full_rank_is_the_sum(shape):
    """Of full rank the factors have the whole gradient, and the error stays 0."""
    gradient = np.random.RandomState(0).normal(size=shape).astype(np.float32)
    variable = tf.get_variable("matrix", shape)
    sums = LowRankSums([variable], rank=9, device="/device:CPU:0")
    group = Collectives(["/device:CPU:0"], 0, 1, "test")
    [found], state = sums.sum(group, [tf.constant(gradient)], 1.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, *new = session.run([found, *(value for _, value in state)])
    np.testing.assert_allclose(found, gradient, atol=1e-5)
    np.testing.assert_allclose(new[1], np.zeros(shape), atol=1e-5)


def test_nothing_is_lost_over_steps():
    """What was applied in five steps and the last error add up to the gradients of these steps."""
    shape = [6, 5]
    gradients = np.random.RandomState(1).normal(size=[5, *shape]).astype(np.float32)
    given = tf.placeholder(tf.float32, shape)
    sums = LowRankSums([tf.get_variable("matrix", shape)], rank=1, device="/device:CPU:0")
    group = Collectives(["/device:CPU:0"], 0, 1, "test")
    [found], state = sums.sum(group, [given], 1.0)
    with tf.control_dependencies([found, *(value for _, value in state)]):
        noted = [tf.assign(variable, value) for variable, value in state]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        applied = [session.run([found, noted], {given: each})[0] for each in gradients]
        [error] = session.run(sums.errors)
    assert [np.linalg.matrix_rank(each, 1e-4) for each in applied] == [1] * 5
    np.testing.assert_allclose(np.sum(applied, 0) + error, np.sum(gradients, 0), atol=1e-5)


@pytest.mark.one_mode
def test_a_thirtieth_of_the_bytes_of_a_resnet():
    """At rank 4 resnet_v1_50 sends at most 1/30 of its gradients' numbers, counted from shapes."""
    network = nets_factory.get_network_fn("resnet_v1_50", 1000, is_training=True)
    network(tf.zeros([1, 224, 224, 3]))
    shapes = [variable.shape.as_list() for variable in tf.trainable_variables()]
    whole = sum(int(np.prod(shape)) for shape in shapes)
    assert sum(numbers_sent(shape, rank=4) for shape in shapes) <= whole / 30


@pytest.mark.one_mode
def test_a_single_process_sends_nothing():
    """Without another replica a rank is refused."""
    with pytest.raises(ValueError, match=r"None with num_replicas=1, .* got 4"):
        harness.Replica(LogicalDevices(all_reduce=True, gradient_rank=4), GOLDENS["linear"])


@pytest.mark.one_mode
def test_small_matrices_are_sent_whole():
    """Factors are sent where they have at most half of the numbers: 2 (8 + 8) are half of 64."""
    assert sizes_of([10], rank=4) is None
    assert numbers_sent([8, 8], rank=2) == 32
    assert numbers_sent([8, 8], rank=3) == 64
    assert numbers_sent([3], rank=1) == 3
