"""Asynchronous clones: each updates the shared variables by itself."""

import concurrent.futures

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, graph_walk, slim
from tests.clusters import start_cluster
from tests.goldens import (
    BATCH_LAW_GOLDENS,
    GOLDENS,
    NUM_EXAMPLES,
    LogicalDevices,
    cpu_config,
    feed_clones,
)


def _deploy(name, num_clones, optimizer=None, accumulate_steps=1, **options):
    optimizer = optimizer or tf.train.GradientDescentOptimizer(0.1)
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=accumulate_steps)
    return deploy(
        config,
        feed_clones(GOLDENS[name], config.batches_per_step),
        optimizer=optimizer,
        asynchronous=True,
        **options,
    )


def _session():
    session = tf.Session(config=cpu_config(4))
    session.run(tf.global_variables_initializer())
    return session


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "parts"),
    [*((name, 1) for name in GOLDENS), *((name, 3) for name in BATCH_LAW_GOLDENS)],
)
@pytest.mark.parametrize("clip_norm", [None, 0.05], ids=["plain", "clipped"])
def test_updates_in_turn_are_steps_of_one_clone(name, parts, clip_norm, variable_kind):
    """Clones in turn train as one clone does that gets their batches one after the other.

    That holds for the loss, regularization, batch-norm statistics and the global step; and for
    clones that take their batch in three parts.
    """
    model = _deploy(name, 2, clip_norm=clip_norm, accumulate_steps=parts)
    assert len(model.clone_updates) == 2
    with _session() as session:
        losses = [session.run(model.clone_updates[i].train_op) for i in (0, 1, 1, 0)]
        values = session.run({v.op.name: v for v in tf.global_variables()})
    with tf.Graph().as_default():
        golden, per_clone = GOLDENS[name], NUM_EXAMPLES // 2
        features = tf.placeholder(golden.features.dtype, (per_clone, *golden.features.shape[1:]))
        labels = tf.placeholder(golden.labels.dtype, (per_clone, *golden.labels.shape[1:]))
        one = deploy(
            LogicalDevices(),
            golden.model_fn,
            [features, labels],
            optimizer=tf.train.GradientDescentOptimizer(0.1),
            clip_norm=clip_norm,
        )
        with _session() as session:
            for i, loss in zip((0, 1, 1, 0), losses, strict=True):
                part = slice(i * per_clone, (i + 1) * per_clone)
                feed = {features: golden.features[part], labels: golden.labels[part]}
                assert session.run(one.train_op, feed) == pytest.approx(loss, rel=1e-5)
            expected = session.run({v.op.name: v for v in tf.global_variables()})
    assert values.keys() == expected.keys()
    for variable, value in expected.items():
        np.testing.assert_allclose(values[variable], value, rtol=1e-5, atol=1e-6, err_msg=variable)


@pytest.mark.gpu
def test_train_op_is_one_update_of_every_clone(variable_kind):
    """Old code that runs `train_op` trains, too: n updates, and the mean of the losses."""
    model = _deploy("slim_mlp", 3)
    train_op, _, total_loss, clones = model
    assert train_op.op.name == "train_op"
    assert len(clones) == len(model.clone_updates) == 3
    with _session() as session:
        before = session.run(total_loss)
        assert session.run(train_op) == pytest.approx(before, rel=0.05)
        assert session.run(tf.train.get_global_step()) == 3


def _waiting_model():
    """A model whose clones wait for their data; returns the function and the queues."""
    queues = []

    def model_fn():
        queue = tf.FIFOQueue(100, tf.float32, ())
        queues.append(queue)
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.mean_squared_error(queue.dequeue(), weight)

    return model_fn, queues


def test_no_clone_waits_for_another(variable_kind):
    """While one clone has no data the other updates; then the staleness of the first shows.

    The slow clone starts with the weight 0 and ends after 4 updates of the other.
    """
    model_fn, queues = _waiting_model()
    optimizer = tf.train.GradientDescentOptimizer(1 / 8)
    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=optimizer, asynchronous=True)
    slow, fast = model.clone_updates
    give = [queue.enqueue(1.0) for queue in queues]
    started = [op for op in tf.get_default_graph().get_operations() if "step_at_start" in op.name]
    assert len(started) == 2
    with _session() as session, concurrent.futures.ThreadPoolExecutor() as pool:
        read = tf.Variable(False, collections=[], use_resource=True)
        session.run(read.initializer)
        with tf.control_dependencies([started[0]]):
            note = read.assign(True)
        waiting = pool.submit(session.run, [slow, note])
        while not session.run(read.read_value()):  # until the slow clone has begun
            pass
        for i in range(4):
            _, result = session.run([give[1], fast])
            assert (result.staleness, result.global_step) == (0, i + 1)
        session.run(give[0])
        result, _ = waiting.result(timeout=30)
        assert (result.staleness, result.global_step) == (4, 5)
        assert session.run(tf.train.get_global_step()) == 5


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [4])
def test_every_update_counts_once(threads, variable_kind):
    """However the clones meet, the global step is the number of updates."""
    model = _deploy("linear", threads)
    steps = 200
    with _session() as session, concurrent.futures.ThreadPoolExecutor() as pool:
        start = session.run(model.total_loss)
        runs = [session.make_callable(update.train_op) for update in model.clone_updates]
        futures = [pool.submit(lambda run=run: [run() for _ in range(steps)]) for run in runs]
        for future in futures:
            future.result(timeout=60)
        assert session.run(tf.train.get_global_step()) == threads * steps
        assert session.run(model.total_loss) < start


def test_clones_of_a_replica_with_a_parameter_server(variable_kind):
    """Asynchronous clones update variables on a ps task, and count on it."""
    [target] = start_cluster(num_workers=1, num_ps=1)
    model = deploy(
        LogicalDevices(num_clones=2, num_ps_tasks=1),
        feed_clones(GOLDENS["embedding"], 2),
        optimizer=tf.train.GradientDescentOptimizer(0.1),
        asynchronous=True,
    )
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        for i, update in enumerate((*model.clone_updates, model.clone_updates[0])):
            assert session.run(update)[1:] == (0, i + 1)
        assert {v.device for v in tf.global_variables()} == {"/job:ps/task:0/device:CPU:0"}


def test_a_model_unpacks_as_in_tf_slim():
    """A model has TF-Slim's four fields; what is new are attributes, empty in other ways."""
    config = LogicalDevices(num_clones=2)
    model = deploy(
        config,
        feed_clones(GOLDENS["linear"], 2),
        optimizer=tf.train.GradientDescentOptimizer(0.1),
    )
    assert model._fields == ("train_op", "summary_op", "total_loss", "clones")
    train_op, summary_op, total_loss, clones = model
    assert (model.train_op, model.summary_op) == (train_op, summary_op)
    assert (model.total_loss, model.clones) == (total_loss, clones)
    assert (model.clone_updates, model.owns_variables, model.copies_difference) == ((), False, None)


def test_a_clone_needs_nothing_of_another():
    """No op of another clone's forward or backward pass is part of a clone's update."""
    model = _deploy("slim_mlp", 3)
    for i, update in enumerate(model.clone_updates):
        needed = graph_walk.ancestors([update.train_op.op], control_inputs=True)
        others = [op for op in needed if op.name.startswith("clone_") and op.type == "MatMul"]
        assert others
        assert {op.name.split("/")[0] for op in others} == {f"clone_{i}"}


@pytest.mark.gpu
def test_own_regularization_of_each_clone():
    """A loss of a clone's activations counts in that clone's update, that of weights in all."""

    def model_fn():
        weight = tf.get_variable(
            "weight", [], initializer=tf.ones_initializer(), regularizer=lambda w: 10 * w
        )
        features = next(batches)
        slim.losses.add_loss(weight * features)
        tf.add_to_collection(
            tf.GraphKeys.REGULARIZATION_LOSSES,
            tf.multiply(100.0 * features, weight, name="activity"),
        )

    batches = iter([tf.constant(1.0), tf.constant(2.0)])
    model = deploy(
        LogicalDevices(num_clones=2),
        model_fn,
        optimizer=tf.train.GradientDescentOptimizer(0.0),
        asynchronous=True,
    )
    with _session() as session:
        losses = [session.run(update.train_op) for update in model.clone_updates]
    assert losses == [1 + 10 + 100, 2 + 10 + 200]


def test_sparse_gradients_stay_sparse(variable_kind):
    """Each clone's gradient of an embedding reaches the optimizer as rows."""
    kinds = []

    class Spy(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, *args, **kwargs):
            kinds.extend(
                isinstance(gradient, tf.IndexedSlices)
                for gradient, variable in grads_and_vars
                if variable.op.name == "table"
            )
            return super().apply_gradients(grads_and_vars, *args, **kwargs)

    _deploy("embedding", 2, Spy(0.1))
    assert kinds == [True, True]


@pytest.mark.gpu
def test_update_ops_run_with_every_update(variable_kind):
    """Ops, and functions that make ops, are part of each clone's update."""
    counts = [tf.Variable(0, trainable=False) for _ in range(2)]
    model = _deploy(
        "linear",
        2,
        update_ops=[
            tf.assign_add(counts[0], 1, use_locking=True),
            lambda: tf.assign_add(counts[1], 1, use_locking=True),
        ],
    )
    with _session() as session:
        for update in (model.clone_updates[1], *model.clone_updates):
            session.run(update.train_op)
        assert session.run(counts) == [3, 3]


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        pytest.param(
            {"all_reduce": True},
            {"asynchronous": True},
            "asynchronous must be False with all_reduce=True, got True",
            id="all-reduce",
        ),
        pytest.param(
            {},
            {"asynchronous": True, "replicas_to_aggregate": 1},
            "replicas_to_aggregate must be None with asynchronous=True, got 1",
            id="synchronous",
        ),
    ],
)
def test_ways_that_exclude_each_other(config, options, message):
    """One deployment trains in one way."""
    with pytest.raises(ValueError, match=message):
        deploy(DeploymentConfig(**config), lambda: None, **options)
