"""What moves between parameter servers and a worker in a step, and what reads see.

That the numbers stay those of one process is in `tests/laws.py`.
"""

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, graph_walk, slim
from model_deploy.training import moving_average_update
from tests import clusters, copies, harness
from tests.goldens import GOLDENS, NUM_CLASSES, LogicalDevices, formula

SGD = tf.train.GradientDescentOptimizer
HALVING = SGD(0.5)


def _job(device):
    return tf.DeviceSpec.from_string(device).job


def _moved(train_op, source, destination):
    """Bytes of each tensor that moves in a step from one job to another, by its name.

    A tensor that goes to several devices counts for each.
    """
    edges = {
        (tensor, op.device)
        for op in graph_walk.ancestors([train_op.op], control_inputs=True)
        for tensor in op.inputs
        if tensor.dtype != tf.resource
        and (_job(tensor.device), _job(op.device)) == (source, destination)
    }
    return sorted(t.shape.num_elements() * t.dtype.size for t, _ in edges)


def _waits(train_op, source, destination):
    """The ops of a job for which ops of another job wait without taking a value of them."""
    return {
        waited
        for op in graph_walk.ancestors([train_op.op], control_inputs=True)
        for waited in op.control_inputs
        if (_job(waited.device), _job(op.device)) == (source, destination)
    }


def _layers():
    """Two layers with L2: weights of 25,600 and 300 floats, 100 and 3 biases."""
    with slim.arg_scope(
        [slim.fully_connected],
        weights_initializer=formula,
        weights_regularizer=slim.l2_regularizer(0.01),
    ):
        net = slim.fully_connected(tf.ones([8, 256]), 100, scope="hidden")
        logits = slim.fully_connected(net, NUM_CLASSES, scope="logits")
    tf.losses.sparse_softmax_cross_entropy(tf.zeros([8], tf.int32), logits)


@pytest.mark.one_mode
@pytest.mark.parametrize(("num_clones", "parts"), [(1, 1), (3, 1), (1, 3)])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["together", "asynchronous"])
def test_each_variable_moves_once_per_step(num_clones, parts, asynchronous, variable_kind):
    """Both ways the big weights move by themselves, and all that is small in one pack.

    So they do for clones that take several batches, one after the other.
    After the update the global step comes back, and with asynchronous clones the staleness.
    """
    config = LogicalDevices(num_clones=num_clones, num_ps_tasks=1, accumulate_steps=parts)
    model = deploy(config, _layers, optimizer=SGD(0.1), asynchronous=asynchronous)
    train_op = model.clone_updates[-1].train_op if asynchronous else model.train_op
    big, small = 4 * 256 * 100, 4 * (100 + 100 * NUM_CLASSES + NUM_CLASSES)
    counts = 16 if asynchronous else 8
    assert _moved(train_op, "ps", "worker") == [counts, small, big]
    rate = 4
    assert _moved(train_op, "worker", "ps")[-2:] == [small, big]
    assert sum(_moved(train_op, "worker", "ps")) <= small + big + 2 * rate
    # What is not a value: asynchronous clones say when they have computed all.
    assert len(_waits(train_op, "worker", "ps")) == int(asynchronous)


@pytest.mark.one_mode
def test_no_gradient_leaves_before_the_loss(variable_kind):
    """The forward pass has read all variables before a parameter server updates one."""

    def model_fn():
        # Each gradient is known before its variable is read.
        for i in range(3):
            weights = tf.get_variable(f"weights_{i}", [20, i + 1])
            tf.losses.compute_weighted_loss(tf.reduce_sum(weights))

    model = deploy(LogicalDevices(num_ps_tasks=2), model_fn, optimizer=SGD(0.1))
    updates = [
        op
        for op in graph_walk.ancestors([model.train_op.op], control_inputs=True)
        if "ApplyGradientDescent" in op.type
    ]
    assert len(updates) == 3
    for update in updates:
        assert model.total_loss.op in graph_walk.ancestors([update], control_inputs=True)


def test_packs_of_several_parameter_servers():
    """Each one has its own packs: here of hidden/weights, logits/weights and of both biases."""
    model = deploy(LogicalDevices(num_ps_tasks=2), _layers, optimizer=SGD(0.1))
    big, last, biases = 4 * 256 * 100, 4 * 100 * NUM_CLASSES, 4 * (100 + NUM_CLASSES)
    moved = _moved(model.train_op, "ps", "worker")
    assert sum(moved) == 8 + big + last + biases
    assert len(moved) <= 4


def _half(weight):
    """Its gradient is the weight: a step of `HALVING` halves it."""
    tf.losses.add_loss(tf.square(weight) / 2)


def _weight():
    return tf.get_variable("weight", [], initializer=tf.ones_initializer())


def _target():
    """A worker with two parameter servers, which know no variable."""
    [target] = clusters.workers(1)
    return target


def _run(model, fetches, steps=2):
    return harness.run_steps(model, fetches, steps, _target())[1]


def test_functions_see_the_new_weights():
    """Functions among the update ops read the variables after the step: 1, 1/2, 1/4."""
    with tf.device("/job:ps/task:0"):
        copied = tf.get_variable("copied", [], trainable=False)
    model = deploy(
        LogicalDevices(num_clones=2, num_ps_tasks=2),
        lambda: _half(_weight()),
        optimizer=HALVING,
        update_ops=[lambda: tf.assign(copied, tf.trainable_variables()[0])],
    )
    assert _run(model, copied) == 0.25


@pytest.mark.one_mode
def test_moving_averages_stay_beside_the_variables(variable_kind):
    """They are those of the weights after each step, and no average moves to the worker.

    The weight goes 1, 1/2, 1/4: a scalar, as is what else moves.
    """
    with tf.device("/job:ps/task:1"):
        step = tf.train.get_or_create_global_step()
    model = deploy(
        LogicalDevices(num_clones=2, num_ps_tasks=2),
        lambda: _half(_weight()),
        optimizer=HALVING,
        update_ops=[moving_average_update(0.5, step)],
    )
    [average] = [v for v in tf.global_variables() if "Average" in v.op.name]
    assert average.device == tf.trainable_variables()[0].device
    assert _moved(model.train_op, "ps", "worker").count(4) == 1
    expected = 1.0
    for step_after, weight in ((1, 0.5), (2, 0.25)):
        decay = min(0.5, (1 + step_after) / (10 + step_after))
        expected = decay * expected + (1 - decay) * weight
    assert _run(model, average) == pytest.approx(expected, rel=1e-6)


def test_reads_after_an_assignment_see_it():
    """A read under a control dependency is another one than that of the start of the step.

    The counter is read as 0 and 1, 1 and 2 in the first two steps: 0 + 10 x 1, 1 + 10 x 2.
    """
    seen = []

    def model_fn():
        counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
        _half(_weight())
        before = counter + 0.0
        with tf.control_dependencies([before]):
            add = counter.assign_add(1.0, read_value=False)
        with tf.control_dependencies([add]):
            after = counter.read_value()
        seen.append(before + 10 * after)
        _half(counter * 0.0)

    model = deploy(LogicalDevices(num_ps_tasks=1), model_fn, optimizer=SGD(0.0))
    with tf.Session(_target()) as session:
        harness.start(session)
        numbers = [session.run([seen[0], model.train_op])[0] for _ in range(2)]
    assert numbers == [10.0, 21.0]


def test_uses_on_the_parameter_server_stay_there(variable_kind):
    """An op beside the variable takes it there: only its result moves."""

    def model_fn():
        table = tf.get_variable("table", [1000, 64], initializer=tf.ones_initializer())
        with tf.device("/job:ps/task:0"):
            mean = tf.reduce_mean(tf.square(table))
        tf.losses.add_loss(mean + tf.reduce_sum(tf.nn.embedding_lookup(table, [1])))

    model = deploy(LogicalDevices(num_clones=2, num_ps_tasks=1), model_fn, optimizer=SGD(0.1))
    assert max(_moved(model.total_loss, "ps", "worker")) <= 2 * 64 * 4


@pytest.mark.one_mode
@pytest.mark.parametrize("copy_clones", [False, True], ids=["called", "copied"])
def test_evaluation_beside_training(copy_clones, variable_kind):
    """A second deployment in the graph reads for itself, and gives the loss of the new weights."""
    golden = GOLDENS["slim_mlp"]
    config = LogicalDevices(num_clones=2, num_ps_tasks=1, copy_clones=copy_clones)

    def build(optimizer=None):
        batches = copies.batches_of(golden, 2)
        model_fn = lambda batches: golden.model_fn(*next(batches))  # noqa: E731
        return deploy(config, model_fn, [batches], optimizer=optimizer)

    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        model, evaluation = build(SGD(0.1)), build()
    with tf.Session(_target()) as session:
        harness.start(session)
        first = session.run(evaluation.total_loss)
        assert session.run(model.train_op) == pytest.approx(first, rel=1e-5)
        assert session.run(evaluation.total_loss) < first
