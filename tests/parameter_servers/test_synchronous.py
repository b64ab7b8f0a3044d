"""Synchronous replicas on parameter servers: who waits for whom, and what runs with an update.

That they train as one clone does is in `tests/laws.py`.
"""

import concurrent.futures
import contextlib
import threading
from unittest import mock

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.hooks import session_hooks
from tests import clusters, harness
from tests.goldens import GOLDENS, LogicalDevices, feed_clones


@pytest.fixture(params=[1, 2], ids=["1 ps", "2 ps"])
def cluster(request):
    """Targets of two workers without variables, and the number of ps tasks."""
    targets = clusters.workers(2)
    return targets, request.param


def _replicas(num_ps, model, aggregate=2, make_optimizer=harness.sgd, *, parts=1, **options):
    config = LogicalDevices(
        num_replicas=2, num_ps_tasks=num_ps, replicas_to_aggregate=aggregate, accumulate_steps=parts
    )
    return harness.replicas_of(config, model, make_optimizer, **options)


@contextlib.contextmanager
def _started(replicas, targets):
    """Both replicas, ready for steps."""
    with harness.opened(replicas, targets), concurrent.futures.ThreadPoolExecutor() as pool:
        for replica in replicas:
            replica.start()
        yield pool


@pytest.mark.one_mode
def test_update_ops(cluster, variable_kind):
    """Ops run with each replica's step; functions make ops that run once per update, after it.

    The model loses 1 per step at rate 1, from 0.  Its average at decay 1/2, from 0 too, is
    then (0 - 1) / 2 = -1/2, (-1/2 - 2) / 2 = -5/4 and (-5/4 - 3) / 2 = -17/8.
    """
    targets, num_ps = cluster

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(1.0 * weight)
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        update = tf.assign_add(count, 1.0, use_locking=True)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)

    def average():
        averages = tf.train.ExponentialMovingAverage(0.5)
        return averages.apply(tf.trainable_variables()[:1])

    replicas = _replicas(
        num_ps, model_fn, make_optimizer=lambda: harness.sgd(1.0), update_ops=[average]
    )
    harness.train_together(replicas, targets)
    values = replicas[1].values
    assert values == {
        "global_step": harness.STEPS,
        "weight": -3,
        "weight/ExponentialMovingAverage": -17 / 8,
        "count": 2 * harness.STEPS,
    }


@pytest.mark.slow
def test_a_fast_replica_counts_once(cluster):
    """A replica that is ahead waits: it cannot stand in for one that has no gradients yet."""
    targets, num_ps = cluster
    first, second = _replicas(num_ps, GOLDENS["linear"])
    with _started([first, second], targets) as pool:
        for step in (1, 2, 3):
            ahead = pool.submit(first.step)
            with pytest.raises(concurrent.futures.TimeoutError):
                ahead.result(timeout=0.3)
            assert second.step() == step
            assert ahead.result(timeout=30) == step


@pytest.mark.parametrize(
    ("name", "rotated", "cluster"),
    [
        pytest.param("linear", False, 2, marks=pytest.mark.one_mode),
        pytest.param("embedding", False, 1, marks=pytest.mark.one_mode),
        pytest.param("linear", True, 1, marks=pytest.mark.one_mode),
        ("embedding", True, 2),
    ],
    indirect=["cluster"],
)
def test_a_replica_that_starts_anew_counts_once(cluster, name, rotated):
    """One that waits for an update when its session ends makes the step again in the next one, and
    cannot stand in for the replica that has no gradients yet.
    """
    targets, num_ps = cluster
    config = LogicalDevices(
        num_replicas=2, num_ps_tasks=num_ps, replicas_to_aggregate=2, rotate_steps=rotated
    )
    replicas = [*harness.replicas_of(config, GOLDENS[name], harness.momentum)]
    first, second = replicas
    with _started(replicas, targets) as pool:
        for step in (1, 2, 3):
            for _ in range(2):
                waits = pool.submit(second.step)
                with pytest.raises(concurrent.futures.TimeoutError):
                    waits.result(timeout=0.5)
                second.session.close()
                with pytest.raises(tf.errors.CancelledError):
                    waits.result(timeout=30)
                second.open(targets[1])
                second.start()
            ahead = pool.submit(second.step)
            assert first.step() == step
            assert ahead.result(timeout=30) == step
        first.finish()
    expected = harness.one_clone(GOLDENS[name], harness.momentum)
    harness.assert_close(first.values, expected.values)


@pytest.mark.one_mode
@pytest.mark.parametrize("parts", [1, 3])
def test_a_backup_replaces_a_slow_replica(cluster, parts):
    """With one gradient per update a replica alone goes on; another joins at the newest step."""
    targets, num_ps = cluster
    first, second = _replicas(num_ps, GOLDENS["linear"], 1, parts=parts)
    with _started([first, second], targets):
        assert [first.step() for _ in range(3)] == [1, 2, 3]
        # Its first gradient is that of step 0, which comes too late and is dropped.
        assert [second.step() for _ in range(3)] == [3, 4, 5]
        while first.step() < 6:  # its gradients of step 3 come too late, too
            pass


@pytest.mark.slow
@pytest.mark.one_mode
def test_monitored_sessions(cluster):
    """Monitored sessions train with the hooks of `session_hooks`, and end at once."""
    targets, num_ps = cluster
    replicas = _replicas(num_ps, GOLDENS["slim_mlp"])
    chief_is_ready = threading.Event()

    def run(replica, target):
        if replica.config.replica_id > 0:  # one that finds no variables sleeps for 30 seconds
            assert chief_is_ready.wait(timeout=30)
        with (
            replica.graph.as_default(),
            tf.train.MonitoredTrainingSession(
                target,
                is_chief=replica.config.replica_id == 0,
                hooks=[*replica.hooks, tf.train.StopAtStepHook(last_step=harness.STEPS)],
                config=replica.proto,
                max_wait_secs=30,
            ) as session,
        ):
            chief_is_ready.set()
            while not session.should_stop():
                step = session.run(replica.after_step)
        return step

    assert harness.together(run, replicas, targets) == [harness.STEPS] * 2


def test_a_session_that_closes_within_an_update_is_no_error(caplog):
    """The chief's thread ends at once, says nothing, and the coordinator hears of no error."""
    coordinator, session, begun = tf.train.Coordinator(), mock.Mock(), threading.Event()

    def update():
        assert begun.wait(timeout=30)
        coordinator.request_stop()
        coordinator.join([])
        raise tf.errors.FailedPreconditionError(None, None, "Session is closed.")

    session.make_callable.return_value = update
    replicas = _replicas(1, GOLDENS["linear"])
    replicas[0].hooks[-1].after_create_session(session, coordinator)
    [thread] = [each for each in threading.enumerate() if "_aggregate" in each.name]
    begun.set()
    thread.join(timeout=30)
    assert not thread.is_alive()
    assert not caplog.records
    coordinator.join([])


def test_no_hook_no_token():
    """Without a way to train together there is no hook."""
    deploy(LogicalDevices(), feed_clones(GOLDENS["linear"], 1), optimizer=harness.sgd())
    assert session_hooks() == []


@pytest.mark.parametrize(
    ("config", "value", "message"),
    [
        pytest.param({}, 2, "must be an integer from 1 to num_replicas=1, got 2", id="too many"),
        pytest.param({}, 0, "must be an integer from 1 to num_replicas=1, got 0", id="none"),
        pytest.param({}, True, "must be an integer from 1 to num_replicas=1, got True", id="bool"),
        pytest.param({}, 1.0, "must be an integer from 1 to .*, got 1.0", id="float"),
        pytest.param(
            {"all_reduce": True}, 1, "must be None with all_reduce=True, got 1", id="all-reduce"
        ),
    ],
)
def test_replicas_to_aggregate_is_checked(config, value, message):
    """The number of gradients per update is one that the replicas can give."""
    with pytest.raises(ValueError, match=f"replicas_to_aggregate {message}"):
        deploy(DeploymentConfig(**config), lambda: None, replicas_to_aggregate=value)
