"""Accumulated gradients: the parts of a clone in order, in the memory of one; runs as a whole."""

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
    inputs,
    optimize_clones,
    random_by_step,
    slim,
    train,
)
from tests import copies
from tests.copying.test_model import ALL
from tests.goldens import GOLDENS, LogicalDevices, cpu_config, formula

SGD = tf.train.GradientDescentOptimizer


def _is_value(op):
    """Whether an op computes a value in each step: not a constant, nor the handle of a stack."""
    is_handle = any(tensor.dtype == tf.resource for tensor in op.outputs)
    return op.type not in ("Const", "NoOp") and not is_handle


def _deploy(golden, num_clones, parts, copy=False, **options):
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=parts, copy_clones=copy)
    return deploy(
        config,
        lambda batches: golden.model_fn(*next(batches)),
        [copies.batches_of(golden, config.batches_per_step)],
        optimizer=SGD(0.1),
        **options,
    )


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
@pytest.mark.parametrize("name", list(ALL))
def test_a_part_begins_when_the_one_before_is_added(name, copy, variable_kind):
    """Each op of a part needs all gradients of the part before it, and its own loss."""
    _deploy(ALL[name], 2, 3, copy)
    graph = tf.get_default_graph()
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


def test_parts_run_one_after_the_other(variable_kind):
    """The forward pass of a part runs when the gradients before it are there, in each step."""
    calls = []

    def model_fn():
        weights = tf.get_variable("weights", [4], initializer=formula)
        tf.losses.add_loss(tf.reduce_sum(_noted(calls, weights * 1.0)))

    model = deploy(LogicalDevices(accumulate_steps=4), model_fn, optimizer=SGD(0.1))
    with tf.Session(config=cpu_config(1)) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(model.train_op)
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


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_memory_is_that_of_one_part(copy, variable_kind):
    """Four batches need about the memory of one, not four times as much."""
    one = _peak_bytes(4096, 1, copy)
    assert one > 12 * 4096 * 32 * 4  # what each layer keeps for its gradient
    assert _peak_bytes(4096, 4, copy) < 1.25 * one
    assert _peak_bytes(4 * 4096, 1, copy) > 3 * one


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


def _digits_model(parts, copy=False, num_clones=1):
    """LeNet's layers with dropout on batches of 32 digits in a step, of `num_clones` * `parts`."""
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=parts, copy_clones=copy)
    step = tf.train.get_or_create_global_step()
    batches = inputs.train_batches(
        inputs.get_dataset("digits", "train"),
        preprocessing="lenet",
        batch_size=32 // config.batches_per_step,
        position=step,
        **config.input_arguments(),
    )

    def model_fn(batches):
        batch = next(batches)
        net = slim.fully_connected(slim.flatten(batch["image"]), 16, scope="hidden")
        net = slim.dropout(net, 0.5)
        logits = slim.fully_connected(net, 10, None, scope="logits")
        tf.losses.sparse_softmax_cross_entropy(batch["label"], logits)

    rate = tf.train.exponential_decay(0.01, step, 5, 0.5, staircase=True)
    return deploy(
        config, random_by_step(model_fn), [batches], optimizer=tf.train.AdamOptimizer(rate)
    )


def _run(folder, steps, **options):
    """Trains up to a step; returns all values of the last checkpoint."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = _digits_model(**options)
        train(model, folder, max_steps=steps, session_config=cpu_config(2))
    path = tf.train.latest_checkpoint(str(folder))
    return {name: tf.train.load_variable(path, name) for name, _ in tf.train.list_variables(path)}


@pytest.mark.parametrize("copy", [False, True], ids=["called", "copied"])
def test_a_resumed_run_is_one_that_was_not_stopped(tmp_path, copy):
    """A run that goes on from a checkpoint ends with the same bits; a step is an update."""
    options = {"parts": 2, "num_clones": 2, "copy": copy}
    whole = _run(tmp_path / "whole", 9, **options)
    assert _run(tmp_path / "parts", 4, **options)["global_step"] == 4
    resumed = _run(tmp_path / "parts", 9, **options)
    assert resumed.keys() == whole.keys()
    assert whole["global_step"] == 9
    for name, value in whole.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


def test_checkpoints_are_those_of_one_batch(tmp_path):
    """Names and shapes in a checkpoint do not depend on the number of parts: a run can change."""
    one = _run(tmp_path, 2, parts=1)
    four = _run(tmp_path, 4, parts=4)
    assert {name: value.shape for name, value in four.items()} == {
        name: value.shape for name, value in one.items()
    }


def test_parts_take_the_examples_of_one_batch():
    """Two clones with two batches of 4 get the 16 examples that one clone gets, in each step."""

    def shown(**options):
        with tf.Graph().as_default():
            config = DeploymentConfig(clone_on_cpu=True, **options)
            batches = inputs.train_batches(
                inputs.get_dataset("digits", "train"),
                preprocessing="lenet",
                batch_size=16 // config.batches_per_step,
                include_index=True,
                **config.input_arguments(),
            )
            clones = create_clones(config, lambda: next(batches)["index"])
            indices = tf.concat([clone.outputs for clone in clones], axis=0)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                session.run(tf.tables_initializer())
                return [session.run(indices).tolist() for _ in range(100)]  # of 89 an epoch

    assert shown(num_clones=2, accumulate_steps=2) == shown()


def test_describe_says_how_many_batches(tmp_path):
    """The report of a model names the setting and the batches of an update; of one batch, none."""
    golden = GOLDENS["linear"]
    text = str(describe(_deploy(golden, 2, 3)))
    assert text.startswith("accumulate_steps 3: an update of 6 batches, 3 of each clone, one after")
    with tf.Graph().as_default():
        text = str(describe(_deploy(golden, 2, 3, asynchronous=True)))
        assert text.startswith("accumulate_steps 3: an update of 3 batches")
    with tf.Graph().as_default():
        assert "accumulate_steps" not in str(describe(_deploy(golden, 2, 1)))


@pytest.mark.parametrize("asynchronous", [False, True], ids=["together", "asynchronous"])
def test_train_names_the_clone_of_a_bad_loss(tmp_path, asynchronous):
    """A loss that is not finite is reported with its clone, whichever of its parts it is of."""
    values = iter([1.0, 1.0, 1.0, float("nan")])

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.add_loss(weight * next(values))

    config = LogicalDevices(num_clones=2, accumulate_steps=2)
    model = deploy(config, model_fn, optimizer=SGD(0.1), asynchronous=asynchronous)
    message = "got nan at step" if asynchronous else "got nan at step 1, in clone 1"
    with pytest.raises(FloatingPointError, match=message):
        train(model, tmp_path, max_steps=3, session_config=cpu_config(2))


# tf-slim closes the events while its summary thread may still be at work.
@pytest.mark.filterwarnings("ignore:Attempting to use a closed FileWriter:UserWarning")
def test_slim_trains_it(tmp_path):
    """`slim.learning.train` makes one update of all batches with each step."""
    model = _deploy(GOLDENS["slim_mlp"], 2, 2)
    with tf.Graph().as_default():
        expected = _deploy(GOLDENS["slim_mlp"], 1, 1)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                last = session.run(expected.train_op)
    loss = slim.learning.train(
        model.train_op,
        str(tmp_path),
        number_of_steps=3,
        summary_op=model.summary_op,
        session_config=cpu_config(2),
    )
    assert loss == pytest.approx(last, rel=1e-5)
    assert tf.train.load_variable(str(tmp_path), "global_step") == 3
