"""Accumulated gradients: the parts of a clone in order, in the memory of one."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import (
    DeploymentConfig,
    create_clones,
    deploy,
    describe,
    graph_walk,
    optimize_clones,
)
from tests import harness, laws
from tests.copying.models import ALL
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula

SGD = tf.train.GradientDescentOptimizer


def _is_value(op):
    """Whether an op computes a value in each step: not a constant, nor the handle of a stack."""
    is_handle = any(tensor.dtype == tf.resource for tensor in op.outputs)
    return op.type not in ("Const", "NoOp") and not is_handle


def _built(golden, num_clones, parts, **settings):
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=parts, **settings)
    return harness.Replica(config, golden)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "copy", "variable_kind"),
    laws.covering([ALL, [False, True], laws.KINDS], lambda *cell: True),
    indirect=["variable_kind"],
)
def test_a_part_begins_when_the_one_before_is_added(name, copy, variable_kind):
    """Each op of a part needs all gradients of the part before it, and its own loss."""
    graph = _built(ALL[name], 2, 3, copy_clones=copy).graph
    in_step = graph_walk.ancestors([graph.get_operation_by_name("train_op")], control_inputs=True)
    for clone, part in itertools.product((0, 1), (1, 2)):
        scope, last = (f"clone_{clone}/part_{p}/" for p in (part, part - 1))
        own = [op for op in in_step if op.name.startswith(scope) and _is_value(op)]
        assert len(own) > 10
        begin = graph.get_operation_by_name(f"{scope}part_before_is_done")
        for op in own:
            assert begin in graph_walk.ancestors([op], control_inputs=True), op.name
        before = graph_walk.ancestors([begin], control_inputs=True)
        assert graph.get_operation_by_name(f"{last}scaled_clone_loss") in before
        gradients = {
            op for op in in_step if op.name.startswith(f"{last}gradients/") and _is_value(op)
        }
        assert gradients
        assert {op.name for op in gradients - before} == set()
        others = [f"clone_{1 - clone}/part_{p}/gradients/" for p in range(3)]
        assert not any(op.name.startswith(tuple(others)) for op in before)


def _noted(calls, x):
    """The same value; notes when it and when its gradient are computed."""

    def note(word, value):
        calls.append(word)
        return value

    @tf.custom_gradient
    def noting(x):
        def gradient(dy):
            return tf.ensure_shape(
                tf.numpy_function(lambda v: note("gradient", v), [dy], tf.float32), x.shape
            )

        y = tf.numpy_function(lambda v: note("forward", v), [x], tf.float32)
        return tf.ensure_shape(y, x.shape), gradient

    return noting(x)


@pytest.mark.gpu
def test_parts_run_one_after_the_other(variable_kind):
    """The forward pass of a part runs when the gradients before it are there, in each step."""
    calls = []

    def model_fn():
        weights = tf.get_variable("weights", [4], initializer=formula)
        tf.losses.add_loss(tf.reduce_sum(_noted(calls, weights * 1.0)))

    harness.Replica(LogicalDevices(accumulate_steps=4), model_fn)(steps=3)
    assert calls == ["forward", "gradient"] * 12


def _peak_bytes(rows, parts, copy):
    """The most that the ops of a step have allocated at a time."""

    def model_fn(batches):
        net = next(batches)
        for i in range(12):
            weights = tf.get_variable(f"weights_{i}", [32, 32])
            net = tf.nn.dropout(tf.nn.relu(tf.matmul(net, weights)), rate=0.1)
        tf.losses.mean_squared_error(tf.zeros([rows, 32]), net)

    with tf.Graph().as_default():
        batches = (tf.random_normal([rows, 32]) for _ in range(parts))
        config = DeploymentConfig(clone_on_cpu=True, accumulate_steps=parts, copy_clones=copy)
        model = deploy(config, model_fn, [batches], optimizer=SGD(0.1))
        trace = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(model.train_op)
            session.run(model.train_op, options=options, run_metadata=trace)
    changes = sorted(
        (record.alloc_micros, record.alloc_bytes)
        for device in trace.step_stats.dev_stats
        for node in device.node_stats
        for memory in node.memory
        for record in memory.allocation_records
    )
    return max(itertools.accumulate(size for _, size in changes))


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("copy", "variable_kind"),
    [(False, "reference"), (True, "resource")],
    indirect=["variable_kind"],
)
def test_memory_is_that_of_one_part(copy, variable_kind):
    """Four batches need about the memory of one, not four times as much."""
    one = _peak_bytes(4096, 1, copy)
    assert one > 12 * 4096 * 32 * 4  # what each layer keeps for its gradient
    assert _peak_bytes(4096, 4, copy) < 1.25 * one
    assert _peak_bytes(4 * 4096, 1, copy) > 3 * one


@pytest.mark.gpu
def test_a_loss_of_all_parts(variable_kind):
    """A loss made of the outputs of several parts counts once; no part waits for itself.

    Outputs are w x for x = 1, 2, 3, 4.  Losses: their mean, 2.5 w, and the product of the first
    and the last, 4 w^2; the gradient at w = 1 is 2.5 + 8.
    """
    values = iter([1.0, 2.0, 3.0, 4.0])

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        output = weight * next(values)
        tf.losses.add_loss(output)
        return output

    clones = create_clones(LogicalDevices(num_clones=2, accumulate_steps=2), model_fn)
    assert [clone.scope for clone in clones] == [
        f"clone_{i}/part_{j}/" for i in (0, 1) for j in (0, 1)
    ]
    tf.losses.add_loss(clones[0].outputs * clones[3].outputs)
    total_loss, [(gradient, _)] = optimize_clones(clones, SGD(1.0))
    with tf.Session(config=cpu_config(2)) as session:
        session.run(tf.global_variables_initializer())
        assert session.run([total_loss, gradient]) == [2.5 + 4, 2.5 + 8]


@pytest.mark.gpu
def test_a_variable_that_one_part_does_not_use(variable_kind):
    """What gets gradients in some parts only is trained with those."""
    names = iter(["a", "b", "a"])

    def model_fn():
        variables = {name: tf.get_variable(name, [], initializer=formula) for name in "abc"}
        tf.losses.add_loss(3.0 * variables[next(names)])

    model = deploy(LogicalDevices(accumulate_steps=3), model_fn, optimizer=SGD(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(tf.trainable_variables())
        session.run(model.train_op)
        after = session.run(tf.trainable_variables())
        np.testing.assert_allclose(np.subtract(before, after), [2, 1, 0], atol=1e-6)


def test_variables_can_be_initialized_in_any_part():
    """Variables, tables and queues that a later part makes do not wait for the step."""

    def model_fn():
        own = tf.Variable(2.0, name="own", use_resource=True)
        queue = tf.FIFOQueue(3, tf.float32, ())
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["one"], [1.0]), default_value=0.0
        )
        tf.losses.add_loss(own * queue.dequeue() * table.lookup(tf.constant("one")))
        return queue.enqueue(3.0)

    model = deploy(LogicalDevices(accumulate_steps=2), model_fn, optimizer=SGD(0.5))
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run([clone.outputs for clone in model.clones])
        assert session.run(model.train_op) == 6
        # Each part has its own, of weight 1/2: 2 - 0.5 * 3 / 2.
        assert session.run(tf.trainable_variables()) == [1.25, 1.25]


@pytest.mark.slow
def test_describe_says_how_many_batches():
    """The report of a model names the setting and the batches of an update; of one batch, none."""
    golden = GOLDENS["linear"]
    text = str(describe(_built(golden, 2, 3).model))
    assert text.startswith("accumulate_steps 3: an update of 6 batches, 3 of each clone, one after")
    text = str(describe(_built(golden, 2, 3, asynchronous=True).model))
    assert text.startswith("accumulate_steps 3: an update of 3 batches")
    assert "accumulate_steps" not in str(describe(_built(golden, 2, 1).model))
