"""What a plan reads from a user's model."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, plan

pytestmark = pytest.mark.one_mode

SGD, MOMENTUM = tf.train.GradientDescentOptimizer(0.1), tf.train.MomentumOptimizer(0.1, 0.9)


def _model_fn():
    """Weights of 3 x 5, an average of 7 that is not trained, and 5 x 1; activations of 4 x 5."""
    weights = tf.get_variable("first", [3, 5])
    tf.get_variable("average", [7], trainable=False)
    hidden = tf.tanh(tf.matmul(tf.ones([4, 3]), weights))
    tf.losses.add_loss(tf.reduce_sum(tf.matmul(hidden, tf.get_variable("last", [5, 1]))))


@pytest.mark.parametrize(("optimizer", "slots"), [(SGD, 0), (MOMENTUM, 4 * (15 + 5))])
def test_variables_of_a_model(graph, optimizer, slots):
    """Sizes come in the order of the forward pass; the step and slots are state only."""
    model = deploy(DeploymentConfig(clone_on_cpu=True), _model_fn, optimizer=optimizer)
    found = plan.network_of(model, batch_size=4)
    assert found.variable_bytes == (4 * 15, 4 * 7, 4 * 5)
    assert found.is_trained == (True, False, True)
    assert found.trained_bytes == 4 * 20
    assert found.state_bytes == 4 * 27 + 8 + slots
    assert (found.clones, found.batch_size) == (1, 4)


def test_activations_of_a_model():
    """What the backward pass takes: the 4 x 5 activations, for both gradients, and the inputs. Two
    clones keep as much as one, each on its device.
    """
    for num_clones in (1, 2):
        with tf.Graph().as_default():
            config = DeploymentConfig(num_clones, clone_on_cpu=True)
            model = deploy(config, _model_fn, optimizer=SGD)
            kept = plan.network_of(model, batch_size=4).activation_bytes
        assert 4 * 4 * 5 + 4 * 4 * 3 <= kept <= 4 * (4 * 5 + 4 * 3) + 64


def test_a_plan_of_a_users_model(graph):
    """From `deploy` to the choice. There is nothing to plan without an optimizer."""
    model = deploy(DeploymentConfig(clone_on_cpu=True), _model_fn, optimizer=SGD)
    given = plan.Circumstances(plan.Link(1e9 / 8), step_secs=0.1)
    found = plan.plan_for(plan.network_of(model, batch_size=4), given, workers=[2, 4], ps=[1])
    assert [row.way.workers for row, _ in found.choices] == [2, 4]
    message = "model must have an optimizer, got one that is not"
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        plan.network_of(deploy(DeploymentConfig(clone_on_cpu=True), _model_fn), batch_size=4)
