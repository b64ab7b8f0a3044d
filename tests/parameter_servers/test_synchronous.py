"""Synchronous replicas on parameter servers: one update from the gradients of several."""

import concurrent.futures
import dataclasses
import threading

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy
from model_deploy.hooks import session_hooks
from model_deploy.optimization import AdamWOptimizer, LAMBOptimizer, LARSOptimizer
from tests.clusters import start_cluster
from tests.goldens import BATCH_LAW_GOLDENS, GOLDENS, LogicalDevices, cpu_config, feed_clones

STEPS = 3


def _sgd():
    return tf.train.GradientDescentOptimizer(0.1)


def _part_of_golden(name, config):
    model_fn = feed_clones(GOLDENS[name], config.batches_per_step * config.num_replicas)
    for _ in range(config.replica_id * config.batches_per_step):
        with tf.Graph().as_default():
            model_fn()  # takes a part of the batch that is another replica's
    return model_fn


class Replica:
    """A model on one synchronous replica: a golden's name, for its part of the batch, or any.

    Attributes:
      steps: the global step after each local one.
      values: of all global variables at the end, by name.
    """

    def __init__(self, config, name, replicas_to_aggregate=2, make=_sgd, **options):
        self.graph = tf.Graph()
        self.config = config
        optimizer = make()
        with self.graph.as_default():
            model_fn = name if callable(name) else _part_of_golden(name, config)
            self.model = deploy(
                config,
                model_fn,
                optimizer=optimizer,
                replicas_to_aggregate=replicas_to_aggregate,
                **options,
            )
            with tf.control_dependencies([self.model.train_op]):
                self.step = tf.train.get_global_step().read_value()
            self.hooks = session_hooks()
            self.initialize = tf.global_variables_initializer()
            self.initialize_local = tf.local_variables_initializer()
            self.everything = {v.op.name: v for v in tf.global_variables()}

    def open(self, target):
        """A session; the chief's initializes the variables."""
        filters = ["/job:ps", f"/job:worker/task:{self.config.replica_id}"]
        config = tf.ConfigProto(device_filters=filters)
        session = tf.Session(target, graph=self.graph, config=config)
        if self.config.replica_id == 0:
            session.run(self.initialize)
        return session

    def start(self, session):
        """What `train` does with a new session; returns the coordinator."""
        coordinator = tf.train.Coordinator()
        session.run(self.initialize_local)
        for hook in self.hooks:
            hook.after_create_session(session, coordinator)
        return coordinator


def _train(targets, num_ps, name, num_clones=1, *, steps=STEPS, accumulate_steps=1, **options):
    """Trains two replicas to the end; returns them, with steps and values."""
    for target in targets:
        tf.Session.reset(target)  # servers keep variables of earlier sessions
    replicas = [
        Replica(
            LogicalDevices(
                num_clones=num_clones,
                replica_id=i,
                num_replicas=len(targets),
                num_ps_tasks=num_ps,
                accumulate_steps=accumulate_steps,
            ),
            name,
            **options,
        )
        for i in range(len(targets))
    ]
    all_done = threading.Barrier(len(targets), timeout=30)

    def run(replica, session):
        replica.start(session)
        replica.steps = [int(session.run(replica.step)) for _ in range(steps)]
        all_done.wait()  # then nobody changes the values any more
        replica.values = session.run(replica.everything)

    sessions = [replica.open(target) for replica, target in zip(replicas, targets, strict=True)]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for _ in pool.map(run, replicas, sessions):
            pass
    for session in sessions:
        session.close()
    return replicas


def _one_clone(name, make=_sgd, steps=STEPS, **options):
    """All variables after the same steps of one clone on the whole batch."""
    optimizer = make()
    with tf.Graph().as_default():
        model_fn = feed_clones(GOLDENS[name], 1)
        model = deploy(LogicalDevices(), model_fn, optimizer=optimizer, **options)
        with tf.Session(config=cpu_config(1)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(steps):
                session.run(model.train_op)
            return session.run({v.op.name: v for v in tf.global_variables()})


def _assert_same(actual, expected, tolerance=1e-6):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        limit = tolerance * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=limit, err_msg=name)


@pytest.fixture(scope="module", params=[1, 2], ids=["1 ps", "2 ps"])
def cluster(request):
    """Targets of two workers, and the number of ps tasks."""
    return start_cluster(num_workers=2, num_ps=request.param), request.param


@pytest.fixture(scope="module")
def two_ps():
    """Targets of two workers, and the number of ps tasks."""
    return start_cluster(num_workers=2, num_ps=2), 2


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_replicas_train_as_one_on_the_whole_batch(two_ps, name, variable_kind):
    """Two replicas on half batches end where one clone on the whole batch ends.

    Each update counts one global step, and both replicas take part in each.
    """
    for replica in _train(*two_ps, name):
        assert replica.steps == [1, 2, 3]
        _assert_same(replica.values, _one_clone(name))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "embedding"])
def test_clones_of_replicas_train_as_one_on_the_whole_batch(cluster, name):
    """Two replicas of two clones end where one clone on the whole batch ends."""
    for replica in _train(*cluster, name, num_clones=2):
        _assert_same(replica.values, _one_clone(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "embedding"])
def test_replicas_that_accumulate_train_as_one_on_the_whole_batch(two_ps, name, variable_kind):
    """Two replicas of two clones with three batches each: the mean of all is clipped, once."""
    options = {"clip_norm": 0.05}
    for replica in _train(*two_ps, name, num_clones=2, accumulate_steps=3, **options):
        assert replica.steps == [1, 2, 3]
        _assert_same(replica.values, _one_clone(name, **options))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["slim_mlp", "embedding"])
@pytest.mark.parametrize("optimizer", ["momentum", "adam", "adamw", "lamb", "lars"])
def test_optimizers(two_ps, name, optimizer):
    """The optimizer's own state moves once per update, with clipping of the mean."""
    make = {
        "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        "adam": lambda: tf.train.AdamOptimizer(0.01),
        "adamw": lambda: AdamWOptimizer(0.01, 0.1, epsilon=0.01),
        "lamb": lambda: LAMBOptimizer(0.01, 0.1, epsilon=0.01),
        "lars": lambda: LARSOptimizer(0.1, 0.9, 0.1, 0.1),
    }[optimizer]
    options = {"make": make, "clip_norm": 0.005}
    for replica in _train(*two_ps, name, **options):
        _assert_same(replica.values, _one_clone(name, **options), 1e-5)


def test_update_ops(cluster, variable_kind):
    """Ops run with each replica's step; functions make ops that run once per update, after it.

    The model loses 1 per step at rate 1, from 0.  Its average at decay 1/2, from 0 too, is
    then (0 - 1) / 2 = -1/2, (-1/2 - 2) / 2 = -5/4 and (-5/4 - 3) / 2 = -17/8.
    """
    targets, num_ps = cluster
    tf.Session.reset(targets[0])

    def replica(replica_id):
        def model_fn():
            weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
            tf.losses.add_loss(1.0 * weight)
            count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
            update = tf.assign_add(count, 1.0, use_locking=True)
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)

        averages = tf.train.ExponentialMovingAverage(0.5)
        return Replica(
            LogicalDevices(num_replicas=2, replica_id=replica_id, num_ps_tasks=num_ps),
            model_fn,
            make=lambda: tf.train.GradientDescentOptimizer(1.0),
            update_ops=[lambda: averages.apply(tf.trainable_variables()[:1])],
        )

    first, second = replica(0), replica(1)
    with first.open(targets[0]) as chief, second.open(targets[1]) as worker:
        first.start(chief)
        second.start(worker)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for _ in range(STEPS):
                step = pool.submit(chief.run, first.step)
                worker.run(second.step)
                step.result(timeout=30)
        values = worker.run(second.everything)
    assert values == {
        "global_step": 3,
        "weight": -3,
        "weight/ExponentialMovingAverage": -17 / 8,
        "count": 2 * STEPS,
    }


@pytest.mark.slow
def test_a_fast_replica_counts_once(cluster):
    """A replica that is ahead waits: it cannot stand in for one that has no gradients yet."""
    targets, num_ps = cluster
    tf.Session.reset(targets[0])
    config = LogicalDevices(num_replicas=2, num_ps_tasks=num_ps)
    first, second = (Replica(dataclasses.replace(config, replica_id=i), "linear") for i in (0, 1))
    with first.open(targets[0]) as chief, second.open(targets[1]) as worker:
        first.start(chief)
        second.start(worker)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for step in (1, 2, 3):
                ahead = pool.submit(chief.run, first.step)
                with pytest.raises(concurrent.futures.TimeoutError):
                    ahead.result(timeout=0.3)
                assert worker.run(second.step) == step
                assert ahead.result(timeout=30) == step


@pytest.mark.parametrize("parts", [1, 3])
def test_a_backup_replaces_a_slow_replica(cluster, parts):
    """With one gradient per update a replica alone goes on; another joins at the newest step."""
    targets, num_ps = cluster
    tf.Session.reset(targets[0])
    config = LogicalDevices(num_replicas=2, num_ps_tasks=num_ps, accumulate_steps=parts)
    first, second = (
        Replica(dataclasses.replace(config, replica_id=i), "linear", replicas_to_aggregate=1)
        for i in (0, 1)
    )
    with first.open(targets[0]) as chief, second.open(targets[1]) as worker:
        first.start(chief)
        second.start(worker)
        assert [chief.run(first.step) for _ in range(3)] == [1, 2, 3]
        # Its first gradient is that of step 0, which comes too late and is dropped.
        assert [worker.run(second.step) for _ in range(3)] == [3, 4, 5]
        while chief.run(first.step) < 6:  # its gradients of step 3 come too late, too
            pass


@pytest.mark.slow
def test_monitored_sessions(cluster):
    """Monitored sessions train with the hooks of `session_hooks`, and end at once."""
    targets, num_ps = cluster
    tf.Session.reset(targets[0])
    config = LogicalDevices(num_replicas=2, num_ps_tasks=num_ps)
    replicas = [Replica(dataclasses.replace(config, replica_id=i), "slim_mlp") for i in (0, 1)]

    chief_is_ready = threading.Event()

    def run(replica, target):
        if replica.config.replica_id > 0:  # one that finds no variables sleeps for 30 seconds
            assert chief_is_ready.wait(timeout=30)
        with (
            replica.graph.as_default(),
            tf.train.MonitoredTrainingSession(
                target,
                is_chief=replica.config.replica_id == 0,
                hooks=[*replica.hooks, tf.train.StopAtStepHook(last_step=STEPS)],
                config=tf.ConfigProto(
                    device_filters=["/job:ps", f"/job:worker/task:{replica.config.replica_id}"]
                ),
                max_wait_secs=30,
            ) as session,
        ):
            chief_is_ready.set()
            while not session.should_stop():
                step = session.run(replica.step)
        return step

    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert list(pool.map(run, replicas, targets)) == [STEPS, STEPS]


def test_no_hook_no_token():
    """Without a way to train together there is no hook."""
    deploy(LogicalDevices(), feed_clones(GOLDENS["linear"], 1), optimizer=_sgd())
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
