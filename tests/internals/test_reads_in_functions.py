"""Conditions within conditions read variables that are on another device."""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig
from tests import harness
from tests.goldens import LogicalDevices

pytestmark = pytest.mark.one_mode  # TensorFlow 1's conditions are no functions


def _whole(variable):
    return tf.nn.zero_fraction(variable)  # which has a condition of its own


def _rows(variable):
    rows = tf.gather(variable, [0, 2])
    return tf.cond(tf.reduce_sum(rows) > 0, lambda: tf.reduce_sum(rows), lambda: 1.0)


def _model_fn(read):
    def model_fn():
        weights = tf.get_variable("weights", initializer=[1.0, 0.0, 3.0])
        is_known = tf.constant(True)  # which a session does not work out before it places ops
        part = tf.cond(is_known, lambda: 3.0 * read(weights), lambda: 0.0)
        tf.losses.add_loss(tf.reduce_sum(tf.square(weights)) + part)

    return model_fn


@pytest.mark.parametrize(
    "config",
    [
        LogicalDevices(num_clones=2),
        LogicalDevices(num_clones=2, copy_clones=True),
        LogicalDevices(num_clones=2, accumulate_steps=2),
        DeploymentConfig(
            num_replicas=2, num_ps_tasks=1, replicas_to_aggregate=2, clone_on_cpu=True
        ),
    ],
    ids=["called", "copied", "in parts", "on a parameter server"],
)
@pytest.mark.parametrize(("read", "first"), [(_whole, 11.0), (_rows, 22.0)])
def test_conditions_within_conditions(read, first, config):
    """Clones train as one: losses 1 + 9 + 3 * (1 / 3), and 1 + 9 + 3 * (1 + 3), at the start."""
    expected = harness.one_clone(_model_fn(read))
    assert expected.losses[0] == pytest.approx(first)
    train = harness.train_replicas if config.num_replicas > 1 else _train_alone
    for run in train(config, _model_fn(read)):
        harness.assert_same(run, expected)


def _train_alone(config, model_fn):
    return [harness.Replica(config, model_fn)()]
