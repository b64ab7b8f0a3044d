"""However a global batch is divided among replicas, a step does the same, wholly or not at all."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, all_reduce, deploy, random_by_step, slim
from model_deploy.updating import note_gate
from tests import harness

SHARES = 4


def _model_fn():
    """Dense layers, batch norm with statistics, dropout and a regularizer, on data by batch."""
    values = np.sin(np.arange(20)).reshape(5, 4)
    inputs = tf.sin(tf.reshape(tf.range(40.0), [8, 5]) * 0.37)
    hidden = slim.fully_connected(
        inputs,
        4,
        activation_fn=None,
        weights_initializer=tf.constant_initializer(values),
        weights_regularizer=slim.l2_regularizer(0.01),
    )
    # Dropout sees to it that each batch is another one.
    hidden = slim.dropout(hidden, 0.5, is_training=True)
    hidden = slim.batch_norm(hidden, is_training=True, decay=0.9)
    tf.losses.add_loss(tf.reduce_mean(tf.square(hidden * tf.constant([1.0, 2, 3, 4]) - 1)))


def _config(**settings):
    return DeploymentConfig(clone_on_cpu=True, all_reduce=True, **settings)


def _run(**settings):
    """Losses and variables after some steps."""
    config = _config(**settings)
    make = lambda: tf.train.MomentumOptimizer(0.05, 0.9)  # noqa: E731
    return harness.Replica(config, _model_fn, make, by_step=True, clip_norm=5.0)()


@pytest.mark.parametrize(("num_clones", "parts"), [(2, 2), (4, 1)])
def test_division_changes_nothing(num_clones, parts):
    """Clones and parts give losses, weights, slots and statistics of all parts in one clone."""
    expected = _run(accumulate_steps=SHARES, global_parts=SHARES)
    run = _run(num_clones=num_clones, accumulate_steps=parts, global_parts=parts)
    np.testing.assert_allclose(run.losses, expected.losses, rtol=1e-6)
    assert sorted(run.values) == sorted(expected.values)
    for name, value in expected.values.items():
        np.testing.assert_allclose(run.values[name], value, rtol=1e-5, atol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    ("dtype", "assigned", "expected"),
    [
        (tf.int64, [-4, -2, -3, -5], -2),
        (tf.int8, [-4, -2, -3, -5], -2),
        (tf.uint16, [3, 40000, 5, 6], 40000),
        (tf.bool, [False, False, True, False], True),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
@pytest.mark.parametrize(("num_clones", "parts"), [(1, 4), (2, 2)])
def test_integers_and_flags_of_parts(num_clones, parts, dtype, assigned, expected):
    """Integers become the largest of all parts, flags one of any; so does what is given once."""
    values = iter(assigned)

    def assign(name, value):
        variable = tf.get_variable(name, [], dtype, tf.zeros_initializer(), trainable=False)
        return variable.assign(tf.constant(value, dtype))

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(weight)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, assign("of_parts", next(values)))

    once = assign("once", assigned[0])
    config = _config(num_clones=num_clones, accumulate_steps=parts, global_parts=parts)
    model = deploy(config, model_fn, optimizer=harness.sgd(1.0), update_ops=[once])
    reads = [*tf.global_variables("of_parts"), *tf.global_variables("once")]
    _, found = harness.run_steps(model, [*reads, model.copies_difference])
    assert found == [expected, assigned[0], 0]


def test_share_of_a_replica():
    """A replica alone that has half of the parts gives half of the gradients and of the loss."""

    def model_fn():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.add_loss(3 + 4 * weight)

    config = _config(accumulate_steps=1, global_parts=2, first_part=1)
    run = harness.Replica(config, model_fn, lambda: harness.sgd(1.0))(steps=1)
    assert run.losses == [1.5]
    assert run.values["weight"] == -2.0


def test_step_that_is_given_up():
    """Where the gate raises an error no variable changes, and the next step is as if for the first.

    Weights, slots, statistics, the moving average of the weights and the step are looked at.
    """
    errors = [RuntimeError("given up")]

    def gate():
        if errors:
            raise errors.pop()

    config = _config(accumulate_steps=2, global_parts=2)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        note_gate(gate)
        averages = tf.train.ExponentialMovingAverage(0.5)
        model = deploy(
            config,
            random_by_step(_model_fn),
            optimizer=tf.train.AdamOptimizer(0.05),
            update_ops=[lambda: averages.apply(tf.trainable_variables())],
        )
        everything = {v.op.name: v for v in tf.global_variables()}
        with tf.Session(config=all_reduce.session_config(config)) as session:
            harness.start(session)
            before = session.run(everything)
            with pytest.raises(tf.errors.OpError, match="given up"):
                session.run(model.train_op)
            for name, value in session.run(everything).items():
                np.testing.assert_array_equal(value, before[name], err_msg=name)
            session.run(model.train_op)
            after = session.run(everything)
            changed = [name for name in before if np.any(before[name] != after[name])]
            assert {"global_step", "BatchNorm/moving_mean"} < set(changed)
            assert any("ExponentialMovingAverage" in name for name in changed)


def _update(kind, variable):
    """Update ops, or a change within the forward pass, that cannot be made later."""
    if kind == "other":
        return variable.scatter_add(tf.IndexedSlices(tf.ones([1]), tf.constant([0])))
    with tf.control_dependencies([variable.assign_add([1.0], read_value=False)]):
        return variable.assign(variable.read_value() * 2, read_value=False)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("other", "add to a global variable, or assign to it.* got .*ScatterAdd"),
        ("chain", "must not need what another one has changed, got Assign.* after Ass"),
        ("forward", "by its optimizer and by update ops alone, got Assign"),
    ],
)
def test_updates_that_cannot_wait(kind, message):
    """What cannot be averaged over parts, or comes before the gate, is refused by name."""

    def model_fn():
        variable = tf.get_variable("count", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(variable - 1))
        if kind == "forward":
            with tf.control_dependencies([variable.assign_add([1.0], read_value=False)]):
                loss = tf.identity(loss)
        else:
            update = _update(kind, variable)
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, getattr(update, "op", update))
        tf.losses.add_loss(loss)

    config = _config(global_parts=1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        deploy(config, model_fn, optimizer=harness.sgd())
