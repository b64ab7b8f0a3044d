"""A rotated step: k of them and a flush are k steps, to the last bit."""

import dataclasses
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.training.steps.report import report_op
from model_deploy.training.steps.rest import RestOfSteps
from model_deploy.training.steps.runner import StepRunner
from tests import clusters, harness
from tests.rotation.models import DEEP, rotated


def _decaying_adam():
    """Adam at a rate that follows the global step."""
    step = tf.train.get_or_create_global_step()
    return tf.train.AdamOptimizer(tf.train.exponential_decay(0.02, step, 1, 0.5), epsilon=1e-2)


def _average():
    return tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())


def _trained(config, make_optimizer, steps=harness.STEPS, **options):
    """A replica alone after its steps, the last one flushed."""
    replica = harness.Replica(config, DEEP, make_optimizer, **options)
    with replica.open():
        replica.start()
        for _ in range(steps):
            replica.step()
        if replica.model.rest is not None:
            replica.model.rest.flush(replica.session)
        replica.finish()
    return replica


@pytest.mark.parametrize(
    ("settings", "make_optimizer", "options"),
    [
        pytest.param(
            {}, harness.sgd, {"by_step": True}, id="one clone", marks=pytest.mark.one_mode
        ),
        pytest.param({"num_clones": 2}, harness.momentum, {}, id="two clones"),
        pytest.param(
            {"accumulate_steps": 2},
            _decaying_adam,
            {"update_ops": [_average]},
            id="parts, Adam",
            marks=pytest.mark.one_mode,
        ),
    ],
)
def test_steps_and_a_flush_are_steps(settings, make_optimizer, options):
    """Losses and all variables are those of steps that are not cut, averages and slots too."""
    config = rotated(**settings)
    found = _trained(config, make_optimizer, **options)
    assert found.model.rest is not None
    plain = dataclasses.replace(config, rotate_steps=False)
    expected = _trained(plain, make_optimizer, **options)
    assert expected.model.rest is None
    harness.assert_equal(found, expected)


@pytest.mark.one_mode
def test_a_second_flush_does_nothing():
    """A flush without a step before it changes nothing, nor does one before the first step."""
    replica = harness.Replica(rotated(), DEEP, harness.momentum)
    with replica.open() as session:
        replica.start()
        rest = replica.model.rest
        before = session.run(replica.variables)
        rest.flush(session)
        for name, value in session.run(replica.variables).items():
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        replica.step()
        rest.flush(session)
        after = session.run(replica.variables)
        assert after["global_step"] == 1
        rest.flush(session)
        for name, value in session.run(replica.variables).items():
            np.testing.assert_array_equal(value, after[name], err_msg=name)


def test_half_a_rest_is_an_error():
    """What runs a part of the rest alone, as a loss does that is fetched so, is no silent harm."""
    replica = harness.Replica(rotated(), DEEP)
    with replica.open() as session:
        replica.start()
        replica.step()
        session.run(replica.model.total_loss)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be done wholly"):
            replica.step()


class _Reader:
    """A hook that takes part in one step, and reads the variables after it."""

    def __init__(self, variables):
        self._variables = variables

    def due(self, step):
        """Whether it takes part."""
        return step == 2

    def before_run(self, context):
        """Fetches nothing."""

    def after_run(self, context, values):
        """Reads them."""
        self.seen = context.session.run(self._variables)


def _replicas_with_a_hook(rotate):
    """Two replicas after three steps, of which the first has read its variables after two."""
    config = dataclasses.replace(rotated(num_replicas=2), rotate_steps=rotate)
    replicas = harness.replicas_of(config, DEEP, harness.momentum)
    reader = _Reader(replicas[0].variables)
    reports = []
    for replica in replicas:
        with replica.graph.as_default():
            report = report_op(replica.model, None, None)
            if rotate:
                report = tf.concat([report, [replica.model.rest.asked]], 0)
            reports.append(report)
    all_done = threading.Barrier(2, timeout=60)

    def train(replica):
        replica.start()
        is_chief = replica.config.replica_id == 0
        session, model = replica.session, replica.model
        rest = RestOfSteps(model.rest, session) if rotate else None
        report, hooks = reports[replica.config.replica_id], [reader] if is_chief else []
        runner = StepRunner(session, report, hooks, rest=rest)
        for step in range(1, harness.STEPS + 1):
            made = runner.run(step)
            replica.losses.append(made.loss)
            assert made.step == step
        if rotate:
            assert not rest.may_end()  # the others have to hear of it
            runner.run(step + 1)
            assert rest.may_end()
        else:
            runner.run(step + 1)
        all_done.wait()
        replica.finish()
        all_done.wait()

    with harness.opened(replicas, clusters.workers(len(replicas))):
        harness.together(train, replicas)
    return replicas, reader.seen


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_hook_of_one_replica_sees_its_step():
    """All replicas flush where one has a hook, or a process is to end; then all go on."""
    found, seen = _replicas_with_a_hook(rotate=True)
    expected, due = _replicas_with_a_hook(rotate=False)
    for one, other in zip(found, expected, strict=True):
        harness.assert_equal(one, other)
    for name, value in due.items():
        np.testing.assert_array_equal(seen[name], value, err_msg=name)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"all_reduce": False}, "must be False without all_reduce=True, or replicas_to_aggregate"),
        ({"global_parts": 1}, "must be False with global_parts, which needs the whole step"),
        ({"precision": "float16"}, "must be False with loss_scale, which needs the whole step"),
        ({"sync_batch_norm": True}, "must be False with sync_batch_norm, which needs"),
        ({"local_steps": 2}, "must be False with local_steps, which sends something else"),
        ({"gradient_rank": 2}, "must be False with gradient_rank, which sends something else"),
        ({"rotate_steps": 1}, "must be True or False, got 1"),
    ],
)
def test_what_needs_the_whole_step(settings, message):
    """A step whose update depends on all of it is not rotated."""
    with pytest.raises(ValueError, match=f"rotate_steps {message}"):
        DeploymentConfig(**{"all_reduce": True, "rotate_steps": True, **settings})


@pytest.mark.one_mode
def test_clipping_needs_the_whole_step():
    """The joint norm of all gradients is there only when all are."""

    def model_fn():
        tf.losses.add_loss(tf.get_variable("weight", [], initializer=tf.ones_initializer()))

    with pytest.raises(
        ValueError, match=r"clip_norm must be None with rotate_steps=True, got 0\.5"
    ):
        deploy(rotated(), model_fn, optimizer=harness.sgd(), clip_norm=0.5)


@pytest.mark.one_mode
def test_a_single_pack_leaves_nothing():
    """Where all gradients travel together, the step is as it is."""

    def model_fn():
        tf.losses.add_loss(tf.get_variable("weight", [], initializer=tf.ones_initializer()))

    model = deploy(rotated(), model_fn, optimizer=harness.sgd(1.0))
    assert model.rest is None
    assert harness.run_steps(model, tf.global_variables("weight")) == ([1.0], [0.0])
