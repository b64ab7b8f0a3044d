"""Laws that hold for every golden model, optimizer and kind of variable."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, slim
from model_deploy.training import OptimizerOptions, build_optimizer
from tests.goldens import (
    BATCH_LAW_GOLDENS,
    GOLDENS,
    NUM_EXAMPLES,
    LogicalDevices,
    cpu_config,
    feed_clones,
)

OPTIMIZERS = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "ftrl",
    "lamb",
    "lars",
    "momentum",
    "nesterov",
    "rmsprop",
    "sgd",
]
# With a small epsilon a first step is the sign of the gradient, and where gradients all but cancel
# that of a rounding error. With that of Adam's options the step is as exact as the gradient.
SETTINGS = {"adamw_epsilon": 1.0, "lamb_epsilon": 1.0}
STEPS = 3
_WEIGHTS = ("weights", "biases", "bias", "table")


def _train(name, num_clones, optimizer="sgd", accumulate_steps=1, **deploy_options):
    """Losses of each step, and all variables at the end, by name."""
    config = LogicalDevices(num_clones=num_clones, accumulate_steps=accumulate_steps)
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = deploy(
            config,
            feed_clones(GOLDENS[name], config.batches_per_step),
            optimizer=build_optimizer(0.1, OptimizerOptions(optimizer=optimizer, **SETTINGS)),
            **deploy_options,
        )
        with tf.Session(config=cpu_config(num_clones)) as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run(model.train_op) for _ in range(STEPS)]
            values = session.run({v.op.name: v for v in tf.global_variables()})
    return losses, values


def _assert_close(actual, expected):
    """Weights differ by 1e-6, slots by 1e-5 of the largest value of each variable.

    A variable whose gradients all but cancel has values near 0 that say nothing about
    rounding: 0.1, a fifth of the largest start value, counts as its least.
    """
    assert actual.keys() == expected.keys()
    weights = [name for name in expected if name.rsplit("/", 1)[-1] in _WEIGHTS]
    assert weights
    for name, value in expected.items():
        limit = (1e-6 if name in weights else 1e-5) * max(np.max(np.abs(value)), 0.1)
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=limit, err_msg=name)


@pytest.mark.gpu
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_four_clones_train_as_one_does(name, optimizer, variable_kind):
    """Four clones on quarters of a batch end where one clone on the whole batch ends."""
    one_losses, one = _train(name, 1, optimizer)
    losses, many = _train(name, 4, optimizer)
    _assert_close(many, one)
    np.testing.assert_allclose(losses, one_losses, rtol=2e-6)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_accumulated_gradients_train_as_a_whole_batch_does(name, optimizer, variable_kind):
    """Two clones that take two quarters each end where one clone on the whole batch ends."""
    one_losses, one = _train(name, 1, optimizer)
    losses, many = _train(name, 2, optimizer, accumulate_steps=2)
    _assert_close(many, one)
    np.testing.assert_allclose(losses, one_losses, rtol=2e-6)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 2), (1, 8), (2, 3), (4, 2)])
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_any_number_of_parts_trains_as_one_does(name, num_clones, steps):
    """n clones with k batches each end where one clone on the whole batch ends."""
    _assert_close(_train(name, num_clones, accumulate_steps=steps)[1], _one_clone(name))


@pytest.mark.gpu
@pytest.mark.parametrize("num_clones", [1, 2, 3, 8])
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_any_number_of_clones_trains_as_one_does(name, num_clones):
    """n clones on n-ths of a batch end where one clone on the whole batch ends."""
    _assert_close(_train(name, num_clones)[1], _one_clone(name))


@functools.cache
def _one_clone(name):
    """All variables after training on one clone."""
    return _train(name, 1)[1]


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("clip_norm", [0.05, 1000.0], ids=["clipping", "not clipping"])
@pytest.mark.parametrize("name", BATCH_LAW_GOLDENS)
def test_clipped_gradients_do_not_depend_on_clones(name, clip_norm):
    """The norm that is clipped is that of the whole batch's gradient, summed over parts, too."""
    expected = _train(name, 1, clip_norm=clip_norm)[1]
    _assert_close(_train(name, 4, clip_norm=clip_norm)[1], expected)
    _assert_close(_train(name, 2, clip_norm=clip_norm, accumulate_steps=2)[1], expected)


@pytest.mark.gpu
def test_linear_model_by_hand(variable_kind):
    """One step of a linear model is exact, in numbers that a float holds exactly.

    The examples are x = 1, 2, 3, 4 with y = 2 x, the start is w = 0, the loss the mean
    of (w x - y)^2.  Its gradient is the mean of -2 x y = -4 x^2, so -4 * 30 / 4 = -30,
    and a step at rate 1/64 gives w = 30 / 64.
    """
    parts = iter([([1.0, 2.0], [2.0, 4.0]), ([3.0, 4.0], [6.0, 8.0])])

    def model_fn():
        x, y = map(tf.constant, next(parts))
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        tf.losses.mean_squared_error(y, weight * x)

    optimizer = tf.train.GradientDescentOptimizer(1 / 64)
    model = deploy(LogicalDevices(num_clones=2), model_fn, optimizer=optimizer)
    with tf.Session(config=cpu_config()) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(model.train_op) == 4 * 30 / 4  # mean of y^2 = 4 x^2
        assert session.run(tf.trainable_variables()) == [30 / 64]


@pytest.mark.gpu
@pytest.mark.parametrize("num_clones", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("name", list(GOLDENS))
def test_total_loss_is_mean_of_clones_plus_regularization(name, num_clones):
    """The reported loss is the mean of what clones report, plus regularization once."""
    golden = GOLDENS[name]
    model = deploy(LogicalDevices(num_clones=num_clones), feed_clones(golden, num_clones))
    regularization = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert bool(regularization) == golden.regularized
    with tf.Session(config=cpu_config(num_clones)) as session:
        session.run(tf.global_variables_initializer())
        total, losses, regularization = session.run(
            [model.total_loss, tf.get_collection(tf.GraphKeys.LOSSES), regularization]
        )
        weights = [
            session.run(v) for v in tf.trainable_variables() if v.op.name.endswith("weights")
        ]
    assert len(losses) == num_clones
    assert total == pytest.approx(np.mean(losses) + sum(regularization), rel=1e-6)
    if name == "slim_mlp":  # l2_regularizer(s) is s * sum(w^2) / 2
        by_hand = sum(0.01 / 2 * np.sum(w**2) for w in weights)
        assert sum(regularization) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 1), (2, 1), (4, 1), (1, 4), (2, 2)])
def test_batch_norm_statistics_are_the_first_clones(num_clones, steps, variable_kind):
    """Moving statistics move by the first clone's first batch alone, as the documentation says."""
    golden = GOLDENS["batch_norm"]
    _, values = _train("batch_norm", num_clones, accumulate_steps=steps)
    first = golden.features[: NUM_EXAMPLES // (num_clones * steps)]
    mean, variance = np.zeros(3), np.ones(3)
    for _ in range(STEPS):  # decay 0.9; the fused kernel gives the unbiased variance
        mean = 0.9 * mean + 0.1 * first.mean(axis=0)
        variance = 0.9 * variance + 0.1 * first.var(axis=0, ddof=1)
    np.testing.assert_allclose(values["norm/moving_mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(values["norm/moving_variance"], variance, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [n for n, golden in GOLDENS.items() if golden.sparse])
@pytest.mark.parametrize(("num_clones", "steps"), [(1, 1), (4, 1), (1, 4), (2, 2)])
def test_sparse_gradients_reach_the_optimizer_sparse(name, num_clones, steps, variable_kind):
    """A gradient that is sparse in each clone, and part, is sparse in the sum."""
    seen = {}

    class Spy(tf.train.GradientDescentOptimizer):
        def apply_gradients(self, grads_and_vars, *args, **kwargs):
            seen.update({v.op.name: g for g, v in grads_and_vars})
            return super().apply_gradients(grads_and_vars, *args, **kwargs)

    config = LogicalDevices(num_clones=num_clones, accumulate_steps=steps)
    model_fn = feed_clones(GOLDENS[name], config.batches_per_step)
    deploy(config, model_fn, optimizer=Spy(0.1))
    kinds = {name: isinstance(gradient, tf.IndexedSlices) for name, gradient in seen.items()}
    assert kinds == {name: name in GOLDENS["embedding"].sparse for name in seen}
    assert any(kinds.values())


def test_goldens_name_their_sparse_variables():
    """The table of goldens says which variables have sparse gradients."""
    for name, golden in GOLDENS.items():
        with tf.Graph().as_default():
            feed_clones(golden, 1)()
            loss = slim.losses.get_total_loss()
            gradients = tf.gradients(loss, tf.trainable_variables())
            sparse = tuple(
                variable.op.name
                for gradient, variable in zip(gradients, tf.trainable_variables(), strict=True)
                if isinstance(gradient, tf.IndexedSlices)
                and name != "tied_embedding"  # a sum of both kinds counts as dense
            )
            assert sparse == golden.sparse, name
