"""Rotated steps on parameter servers: they are plain steps, to the last bit."""

import concurrent.futures
import contextlib
import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from tests import clusters, harness
from tests.goldens import GOLDENS, LogicalDevices
from tests.rotation.models import deep

# The weights of a layer travel by themselves, 100 KB, and its bias with the others.
DEEP = deep(160)


def _rotated(num_replicas=2, **settings):
    """The configuration of a rotated step on two parameter servers."""
    of_all = {"num_ps_tasks": 2, "replicas_to_aggregate": num_replicas}
    return LogicalDevices(num_replicas=num_replicas, rotate_steps=True, **(of_all | settings))


def _average():
    return tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())


def _cut(features, labels):
    """A network whose larger variables are cut into a part for each parameter server."""
    partitioner = tf.fixed_size_partitioner(2)
    with tf.variable_scope("cut", partitioner=partitioner):
        DEEP.model_fn(features, labels)


CUT = dataclasses.replace(DEEP, name="cut", model_fn=_cut)


def _of_replicas(values):
    """Without what several replicas change one after the other, in any order."""
    return {name: value for name, value in values.items() if "/moving_" not in name}


@pytest.mark.parametrize(
    ("settings", "model", "make_optimizer", "options"),
    [
        pytest.param(
            {"wire_precision": "bfloat16"},
            DEEP,
            harness.momentum,
            {"by_step": True},
            id="momentum, dropout, 16 bits between",
            marks=pytest.mark.one_mode,
        ),
        pytest.param(
            {"accumulate_steps": 2, "copy_clones": True},
            DEEP,
            harness.adam,
            {"update_ops": [_average]},
            id="parts, Adam, averages",
        ),
        pytest.param(
            {"num_replicas": 1},
            DEEP,
            harness.adam,
            {},
            id="batch norm",
            marks=pytest.mark.one_mode,
        ),
        pytest.param({}, CUT, harness.momentum, {}, id="partitioned", marks=pytest.mark.one_mode),
        pytest.param({"num_ps_tasks": 1}, GOLDENS["embedding"], harness.adam, {}, id="rows"),
    ],
)
def test_steps_are_plain_steps(settings, model, make_optimizer, options):
    """Losses and all variables are those of plain steps, averages and slots too."""
    config = _rotated(**settings)
    plain = dataclasses.replace(config, rotate_steps=False)
    found, expected = (
        harness.train_replicas(each, model, make_optimizer, **options) for each in (config, plain)
    )
    for one, other in zip(found, expected, strict=True):
        if config.num_replicas > 1:
            one.values, other.values = _of_replicas(one.values), _of_replicas(other.values)
        harness.assert_equal(one, other)
        assert one.model.rest is None


@contextlib.contextmanager
def _lost_in_a_step(rotates=True):
    """Two replicas, of which one has handed in its last layer's gradient of step 2.

    Yields:
      The replicas, a pool, and the step that the other one makes in it.
    """
    targets = clusters.workers(2)
    config = dataclasses.replace(_rotated(), rotate_steps=rotates)
    replicas = harness.replicas_of(config, GOLDENS["slim_mlp"], harness.momentum)
    with harness.opened(replicas, targets), concurrent.futures.ThreadPoolExecutor() as pool:
        harness.together(harness.Replica.start, replicas)
        assert harness.together(harness.Replica.step, replicas) == [1, 1]
        try:
            yield replicas, targets, pool
        finally:
            # Sessions that were opened since would wait for ever, and a server's end for them.
            for replica in replicas:
                replica.close()


def _go_on(replicas):
    """Both replicas make two steps more, with the same values."""
    first, second = (replica.steps[-1] for replica in replicas)
    assert first == second
    for step in (first + 1, first + 2):
        assert harness.together(harness.Replica.step, replicas) == [step, step]
    for replica in replicas:
        replica.finish()
        assert all(np.all(np.isfinite(value)) for value in replica.values.values())


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_replica_that_was_lost_in_a_step_comes_back():
    """Its variables that have been updated wait for nobody; it gives the other gradients anew."""
    with _lost_in_a_step() as (replicas, targets, pool):
        first, second = replicas
        waiting = pool.submit(first.step)
        second.session.run(second.model.exchanged[-1])
        second.close()
        second.session = tf.Session(targets[1], graph=second.graph, config=second.proto)
        second.start()
        assert second.step() == 2
        assert waiting.result(timeout=60) == 2
        _go_on(replicas)


def _come_back(chief, target):
    """A new session of the chief, on parameter servers that have gone on."""
    chief.close()
    chief.session = tf.Session(target, graph=chief.graph, config=chief.proto)
    chief.session.run(chief.initialize_local)
    for hook in chief.hooks:
        hook.mend(chief.session)
    chief.start()


@pytest.mark.slow
@pytest.mark.parametrize("rotates", [True, False], ids=["rotated", "plain"])
def test_a_chief_that_was_lost_in_a_step_comes_back(rotates):
    """It drops the gradients of the step, of which some are taken; both replicas make it anew."""
    with _lost_in_a_step(rotates) as (replicas, targets, pool):
        first, second = replicas
        first.session.run(first.model.exchanged[-1])
        waiting = pool.submit(second.step)
        with pytest.raises(concurrent.futures.TimeoutError):
            waiting.result(timeout=2)
        _come_back(first, targets[0])
        assert waiting.result(timeout=60) == 1  # it has made no step
        _go_on(replicas)


@pytest.mark.slow
@pytest.mark.one_mode
def test_gradients_of_an_earlier_try_do_not_count():
    """A replica that computes while the chief comes back counts once in the step made anew."""
    with _lost_in_a_step(rotates=False) as (replicas, targets, _):
        first, second = replicas
        second.session.run(second.model.exchanged[0])
        _come_back(first, targets[0])
        assert second.step() == 1  # it has made no step
        _go_on(replicas)
    undisturbed = harness.train_replicas(
        dataclasses.replace(_rotated(), rotate_steps=False),
        GOLDENS["slim_mlp"],
        harness.momentum,
        steps=3,
    )
    for one, other in zip(replicas, undisturbed, strict=True):
        harness.assert_close(one.values, other.values)


def _one_weight():
    tf.losses.add_loss(tf.get_variable("weight", [], initializer=tf.ones_initializer()))


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"replicas_to_aggregate": None}, "must be False without all_reduce=True, or replicas_to"),
        ({"replicas_to_aggregate": 1}, "replicas_to_aggregate must be num_replicas=2 with rotate"),
        ({"global_parts": 2}, "must be False with global_parts, which needs the whole step"),
        ({"precision": "float16"}, "must be False with loss_scale, which needs the whole step"),
    ],
)
def test_what_needs_the_whole_step(settings, message):
    """A step whose update depends on all of it, or on some replicas, is not rotated."""
    with pytest.raises(ValueError, match=message):
        _rotated(**settings)


@pytest.mark.one_mode
def test_clipping_needs_the_whole_step():
    """The joint norm of all gradients is there only when all are."""
    config = DeploymentConfig(num_ps_tasks=1, replicas_to_aggregate=1, rotate_steps=True)
    with pytest.raises(ValueError, match=r"clip_norm must be None with rotate_steps=True, got 0"):
        deploy(config, _one_weight, optimizer=harness.sgd(), clip_norm=0.5)
