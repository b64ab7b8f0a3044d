"""Optimizers by rows end where the dense ones end."""

import functools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import training
from model_deploy.optimization.rows import fading, history
from tests.optimization import resting

_ROOM = "model_deploy.optimization.rows"


@functools.cache
def _run(by_rows, dtype=tf.float32, kept=history.STEPS_KEPT, steps=resting.STEPS):
    """The tables after some steps, and what was looked up; of optimizers that keep so many."""
    with pytest.MonkeyPatch.context() as patch:
        for file in ("history", "row_optimizer", "adam", "momentum"):
            patch.setattr(f"{_ROOM}.{file}.STEPS_KEPT", kept)
        patch.setattr(history, "ROUND", kept // 2)
        return resting.run(by_rows, dtype, steps)


@pytest.mark.parametrize(
    ("kept", "steps"),
    [
        pytest.param(history.STEPS_KEPT, 1000, marks=pytest.mark.one_mode),
        (256, 400),
    ],
)
@pytest.mark.parametrize("name", resting.PAIRS)
def test_equals_the_dense_optimizer(name, kept, steps):
    """After 1,000 steps by a schedule, of rows that rest for 1 to 900 of them, a table is the one
    of the dense optimizer to 1e-6, and so were the rows that were looked up, before each step.

    With 256 steps kept, each row is brought up to date every 128 steps, and places are used again.
    """
    table, looked_up = _run(True, kept=kept, steps=steps)
    dense, dense_looked_up = _run(False, steps=steps)
    for found, expected in ((table, dense), (looked_up, dense_looked_up)):
        limit = 1e-6 * max(1.0, np.abs(expected[name]).max())
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=limit)


@pytest.mark.one_mode
@pytest.mark.parametrize("name", resting.PAIRS)
def test_equals_the_dense_optimizer_without_rounding(name):
    """In float64 they differ by what missed updates are interpolated by alone."""
    table, dense = _run(True, tf.float64)[0][name], _run(False, tf.float64)[0][name]
    np.testing.assert_allclose(table, dense, rtol=0, atol=5e-8)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda: training.RowAdamOptimizer(0.1, 0.9, 0.8),
            r"beta1 \*\* 2 must be less than beta2, .* got beta1=0.9 and beta2=0.8",
            id="grows",
        ),
        pytest.param(
            lambda: training.RowAdamOptimizer(0.1, 0.9999, 0.99999),
            "must fade within 8190 steps, got beta1=0.9999 and beta2=0.99999",
            id="fades slowly",
        ),
        pytest.param(
            lambda: training.RowAdamWOptimizer(0.1, beta1=0.9, beta2=0.9),
            "beta2 must be nearer to 1, .* got beta1=0.9 and beta2=0.9",
            id="not smooth",
        ),
        pytest.param(
            lambda: training.RowAdamOptimizer(0.1, beta1=tf.constant(0.9)),
            "beta1 must be a number, for rows to rest by it, got <tf.Tensor",
            id="a tensor",
        ),
        pytest.param(
            lambda: training.RowMomentumOptimizer(0.1, 0.9999),
            "must fade within 8190 steps, got momentum=0.9999",
            id="momentum",
        ),
        pytest.param(
            lambda: training.RowMomentumOptimizer(0.1, 1.0),
            "must fade within 8190 steps, got momentum=1",
            id="never fades",
        ),
        pytest.param(
            lambda: training.RowFtrlOptimizer(
                0.1, initial_accumulator_value=0.0, l2_shrinkage_regularization_strength=0.1
            ),
            "initial_accumulator_value or beta must be more than 0 with a shrinkage, got 0",
            id="ftrl from 0",
        ),
        pytest.param(
            lambda: training.RowFtrlOptimizer(
                0.5,
                initial_accumulator_value=0.25,
                l2_shrinkage_regularization_strength=0.5,
            ),
            r"must be at most 0.5 of the root .* got 1 of it",  # 2 * 0.5 * 0.5 / sqrt(0.25)
            id="shrinks too fast",
        ),
    ],
)
def test_rejects(make, message):
    """What rows cannot be made up for is refused at once, by its name and value."""
    with pytest.raises(ValueError, match=message):
        make()


def test_a_rate_that_shrinks_too_fast_stops_the_step():
    """Of a rate that is a tensor a session says that it is too large."""
    table = tf.get_variable("table", [4, 2])
    rate = tf.placeholder_with_default(10.0, [])
    optimizer = training.RowFtrlOptimizer(rate, l2_shrinkage_regularization_strength=0.1)
    update = optimizer.minimize(tf.reduce_sum(tf.gather(table, [1])))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="learning_rate must be less"):
            session.run(update)
        session.run(update, {rate: 0.1})


@pytest.mark.one_mode
@pytest.mark.parametrize(
    "betas", [(0.9, 0.999), (0.9, 0.99), (0.5, 0.9), (0.99, 0.9999), (0.0, 0.9)]
)
def test_interpolation(betas):
    """A sum by a few numbers is the sum of all terms, to 1e-6 of it, whatever epsilon is."""
    beta1, beta2 = betas
    found = fading.of_adam(beta1, beta2, 8000)
    steps = np.arange(1.0, 8000.0)
    for root in (0.0, 1e-9, 1e-8, 1e-6, 1.0):
        exact = np.sum(beta1**steps / (beta2 ** (steps / 2) * root + 1e-8))
        sums = found.terms[1:].sum(axis=0)
        assert np.sum(sums / (root + 1e-8 * found.shifts)) == pytest.approx(exact, rel=1e-6)
