"""Tests of `model_deploy.updating`, its loss scale and guards, by every way to train."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, batches_taken, deploy, slim
from model_deploy.runs import read_metrics
from model_deploy.training import train
from model_deploy.updating import Condition, loss_scale
from tests import harness, laws
from tests.goldens import GOLDENS, LogicalDevices, cpu_config

STATE = ["loss_scale/in_a_row", "loss_scale/left_out", "loss_scale/value"]
WAYS = {
    "one clone": {},
    "two clones": {"num_clones": 2},
    "copied parts": {"num_clones": 2, "copy_clones": True, "accumulate_steps": 2},
    "all-reduce": {"num_clones": 2, "all_reduce": True},
    "each clone": {"num_clones": 2, "asynchronous": True},
    "replicas": {"replicas_to_aggregate": 1},
}


def _model_fn(factor):
    """A batch norm and a layer; the loss times `factor`, a scalar, which may be infinite."""
    net = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    net = slim.batch_norm(net, is_training=True, decay=0.7, scope="norm")
    net = slim.fully_connected(net, 1, activation_fn=None, scope="layer")
    tf.losses.add_loss(tf.reduce_mean(tf.square(net - 3.0)) * factor)


def _averages():
    return tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())


def _states(factors, *, optimizer=None, **settings):
    """All variables before the first step and after each, with its loss, by one way to train."""
    config = LogicalDevices(**settings)
    factor = tf.placeholder_with_default(1.0, [])
    tf.set_random_seed(1)
    model = deploy(
        config,
        _model_fn,
        [factor],
        optimizer=optimizer or tf.train.AdamOptimizer(0.1),
        update_ops=[_averages],
    )
    states, losses = [], []
    with tf.Session(config=cpu_config(2)) as session:
        harness.start(session)
        everything = {v.op.name: v for v in tf.global_variables()}
        states.append(session.run(everything))
        for each in factors:
            losses.append(session.run(model.train_op, {factor: each}))
            states.append(session.run(everything))
    return states, losses


def _changed(before, after):
    return sorted(name for name in before if not np.array_equal(before[name], after[name]))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "variable_kind"),
    list(zip(WAYS, itertools.cycle(laws.KINDS), strict=False)),
    indirect=["variable_kind"],
)
def test_infinite_gradients_change_nothing(way, variable_kind):
    """Weights, slots, statistics, averages and the step stay; the scale is halved, and counts."""
    states, losses = _states([1, np.inf, 1], loss_scale="dynamic", **WAYS[way])
    assert [bool(np.isfinite(loss)) for loss in losses] == [True, False, True]
    assert _changed(states[1], states[2]) == STATE
    steps = 2 if way == "each clone" else 1  # updates in a step
    assert [int(state["global_step"]) for state in states] == [0, steps, steps, 2 * steps]
    assert [int(state["loss_scale/left_out"]) for state in states] == [0, 0, steps, steps]
    halved = [2.0**15, 2.0**15, 2.0**14, 2.0**14]
    if way != "each clone":  # which may halve it twice
        assert [float(state["loss_scale/value"]) for state in states] == halved
    moved = _changed(states[2], states[3])
    for name in ("norm/moving_mean", "layer/weights", "layer/weights/ExponentialMovingAverage"):
        assert name in moved


# That each trains so with both kinds of variables, but for roundings, is in `tests/laws.py`.
@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "variable_kind"),
    list(zip(GOLDENS, itertools.cycle(laws.KINDS), strict=False)),
    indirect=["variable_kind"],
)
def test_scaled_losses_train_as_plain_ones(name, variable_kind):
    """A scale of 1024, a power of two, changes no bit of what float32 computes."""
    plain, scaled = (
        harness.one_clone(
            GOLDENS[name], harness.momentum, num_clones=2, loss_scale=scale, clip_norm=0.1
        )
        for scale in (None, 1024)
    )
    scaled.values = {key: scaled.values[key] for key in scaled.values if key not in STATE}
    harness.assert_equal(scaled, plain)


def _tiny_gradients(precision, scale):
    """The gradient of 1e-8 x, through a product in a precision, by the deployment's update."""
    config = LogicalDevices(precision=precision, loss_scale=scale)

    def model_fn():
        weight = tf.get_variable("weight", [1, 1], initializer=tf.zeros_initializer())
        product = tf.matmul(tf.constant([[1.0]]), weight)
        tf.losses.add_loss(1e-8 * tf.reduce_sum(product))

    model = deploy(config, model_fn, optimizer=harness.sgd(1.0))
    _, [weight] = harness.run_steps(model, tf.trainable_variables())
    return -float(weight[0, 0])


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("precision", "scale", "expected"),
    [
        pytest.param("float32", None, 1e-8, id="float32"),
        pytest.param("float16", 1, 0.0, id="too small for float16"),
        pytest.param("float16", 4096, 1e-8, id="scaled"),
        pytest.param("float16", None, 1e-8, id="scaled by itself"),
        pytest.param("bfloat16", None, 1e-8, id="bfloat16 has the range of float32"),
    ],
)
def test_gradients_below_the_range_of_float16(precision, scale, expected):
    """A gradient of 1e-8 is 0 in float16, whose smallest number is 6e-8; scaled, it is there."""
    assert _tiny_gradients(precision, scale) == pytest.approx(expected, rel=2**-7)


def test_the_scale_doubles_after_enough_steps(monkeypatch):
    """After so many steps in a row the scale is twice as large; a step left out begins anew."""
    monkeypatch.setattr(loss_scale, "STEPS_TO_DOUBLE", 2)
    states, _ = _states([1, 1, 1, np.inf, 1, 1], loss_scale="dynamic")
    scales = [float(state["loss_scale/value"]) / loss_scale.FIRST_SCALE for state in states]
    assert scales == [1, 1, 2, 2, 1, 1, 2]


def test_a_fixed_scale_stays():
    """A number as the scale stays as it is, and what is left out is counted."""
    states, _ = _states([1, np.inf, np.inf], loss_scale=8)
    assert [float(state["loss_scale/value"]) for state in states] == [8, 8, 8, 8]
    assert int(states[-1]["loss_scale/left_out"]) == 2


def test_no_end_of_infinite_gradients(monkeypatch):
    """Gradients that are never finite are an error that says so, not a run without an end."""
    monkeypatch.setattr(loss_scale, "MOST_LEFT_OUT", 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="in 3 steps in a row"):
        _states([np.inf] * 3, loss_scale="dynamic")


@pytest.mark.parametrize("value", ["often", 0, -1, True, np.inf, np.nan])
def test_wrong_scales(value):
    """A scale that is neither `dynamic` nor a positive number is named."""
    with pytest.raises(ValueError, match="loss_scale must be 'dynamic' or a number more than 0"):
        DeploymentConfig(loss_scale=value)


def test_guard_holds_back_what_was_made_before():
    """Assignments made before run only where the condition is true; what it needs itself does."""
    condition = tf.placeholder(tf.bool, [])
    first, second = tf.Variable(1.0), tf.Variable(1.0)
    needed = tf.assign_add(first, 1.0)
    with tf.control_dependencies([needed]):
        checked = tf.identity(condition)
    held = tf.group(tf.assign_add(second, 1.0), needed)
    guard = Condition(checked)
    [done] = guard.done(guard.hold_back([held]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(done, {condition: False})
        assert session.run([first, second]) == [2, 1]
        session.run(done, {condition: True})
        assert session.run([first, second]) == [3, 2]


def test_a_run_goes_on_and_says_what_it_left_out(tmp_path):
    """`train` makes all steps, and its metrics have the scale and the count."""
    attempts = tf.Variable(0, dtype=tf.int64, trainable=False)

    def model_fn():
        weight = tf.get_variable("weight", [])
        # The second and third attempt overflow.
        number = tf.assign_add(attempts, 1)
        bad = tf.logical_or(tf.equal(number, 2), tf.equal(number, 3))
        tf.losses.add_loss(tf.square(weight - 1.0) * tf.where(bad, np.inf, 1.0))

    config = DeploymentConfig(clone_on_cpu=True, loss_scale="dynamic")
    taken = batches_taken(config)
    model = deploy(config, model_fn, optimizer=harness.sgd())
    train(model, str(tmp_path), max_steps=4, log_every_n_steps=1)
    last = read_metrics(str(tmp_path))[-1]
    assert (last["step"], last["loss_scale"], last["left_out"]) == (4, 2.0**13, 2)
    with tf.Session() as session:
        tf.train.Saver().restore(session, tf.train.latest_checkpoint(str(tmp_path)))
        assert session.run([tf.train.get_global_step(), attempts, taken]) == [4, 6, 6]
