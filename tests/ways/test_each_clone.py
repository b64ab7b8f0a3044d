"""Asynchronous clones: each updates the shared variables by itself.

That they train as one clone that gets their batches in turn is in `tests/laws.py`.
"""

import concurrent.futures

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, graph_walk, slim
from tests import clusters, harness
from tests.goldens import GOLDENS, LogicalDevices, cpu_config


def _replica(name, num_clones, make_optimizer=harness.sgd, **options):
    config = LogicalDevices(num_clones=num_clones, asynchronous=True)
    return harness.Replica(config, GOLDENS[name], make_optimizer, **options)


@pytest.mark.gpu
@pytest.mark.one_mode
def test_train_op_is_one_update_of_every_clone(variable_kind):
    """Old code that runs `train_op` trains, too: n updates, and the mean of the losses."""
    run = _replica("slim_mlp", 3)
    train_op, _, total_loss, clones = run.model
    assert train_op.op.name == "train_op"
    assert len(clones) == len(run.model.clone_updates) == 3
    with run.open() as session:
        before = session.run(total_loss)
        assert run.step() == 3
    assert run.losses == pytest.approx([before], rel=0.05)


def _waiting_model():
    """A model whose clones wait for their data; returns the function and the queues."""
    queues = []

    def model_fn():
        queue = tf.FIFOQueue(100, tf.float32, ())
        queues.append(queue)
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.mean_squared_error(queue.dequeue(), weight)

    return model_fn, queues


@pytest.mark.one_mode
def test_no_clone_waits_for_another(variable_kind):
    """While one clone has no data the other updates; then the staleness of the first shows.

    The slow clone starts with the weight 0 and ends after 4 updates of the other.
    """
    model_fn, queues = _waiting_model()
    optimizer = harness.sgd(1 / 8)
    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=optimizer, asynchronous=True)
    slow, fast = model.clone_updates
    give = [queue.enqueue(1.0) for queue in queues]
    started = [op for op in tf.get_default_graph().get_operations() if "step_at_start" in op.name]
    assert len(started) == 2
    with (
        tf.Session(config=cpu_config(2)) as session,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        harness.start(session)
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
@pytest.mark.one_mode
@pytest.mark.parametrize("threads", [4])
def test_every_update_counts_once(threads, variable_kind):
    """However the clones meet, the global step is the number of updates."""
    run, steps = _replica("linear", threads), 200
    with run.open() as session:
        start = session.run(run.model.total_loss)
        harness.together(lambda clone: [run.update(clone) for _ in range(steps)], range(threads))
        assert session.run(run.variables["global_step"]) == threads * steps
        assert session.run(run.model.total_loss) < start


@pytest.mark.one_mode
def test_clones_of_a_replica_with_a_parameter_server(variable_kind):
    """Asynchronous clones update variables on a ps task, and count on it."""
    config = LogicalDevices(num_clones=2, num_ps_tasks=1, asynchronous=True)
    run = harness.Replica(config, GOLDENS["embedding"])
    updates = run.model.clone_updates
    with run.open(*clusters.workers(1)) as session:
        for i, update in enumerate((*updates, updates[0])):
            assert session.run(update)[1:] == (0, i + 1)
    assert {v.device for v in run.variables.values()} == {"/job:ps/task:0/device:CPU:0"}


def test_a_model_unpacks_as_in_tf_slim():
    """A model has TF-Slim's four fields; what is new are attributes, empty in other ways."""
    model = harness.Replica(LogicalDevices(num_clones=2), GOLDENS["linear"]).model
    assert model._fields == ("train_op", "summary_op", "total_loss", "clones")
    train_op, summary_op, total_loss, clones = model
    assert (model.train_op, model.summary_op) == (train_op, summary_op)
    assert (model.total_loss, model.clones) == (total_loss, clones)
    assert (model.clone_updates, model.owns_variables, model.copies_difference) == ((), False, None)


def test_a_clone_needs_nothing_of_another():
    """No op of another clone's forward or backward pass is part of a clone's update."""
    for i, update in enumerate(_replica("slim_mlp", 3).model.clone_updates):
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

    batches = iter([1.0, 2.0])
    config = LogicalDevices(num_clones=2, asynchronous=True)
    run = harness.Replica(config, model_fn, lambda: harness.sgd(0.0))
    with run.open():
        for clone in (0, 1):
            run.update(clone)
    assert run.losses == [1 + 10 + 100, 2 + 10 + 200]


@pytest.mark.gpu
@pytest.mark.one_mode
def test_update_ops_run_with_every_update(variable_kind):
    """Ops, and functions that make ops, are part of each clone's update."""

    def count(name):
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            counter = tf.get_variable(name, [], tf.int32, tf.zeros_initializer(), trainable=False)
        return tf.assign_add(counter, 1, use_locking=True)

    def model_fn():
        tf.losses.add_loss(1.0 * tf.get_variable("weight", []))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, count("op"))

    config = LogicalDevices(num_clones=2, asynchronous=True)
    run = harness.Replica(config, model_fn, update_ops=[lambda: count("function")])
    with run.open():
        for clone in (1, 0, 1):
            run.update(clone)
        run.finish()
    assert (run.values["op"], run.values["function"]) == (3, 3)


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
