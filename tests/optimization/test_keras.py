"""Optimizers and schedules make the first ten steps that Keras makes."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.optimization import (
    LearningRateOptions,
    OptimizerOptions,
    build_learning_rate,
    build_optimizer,
)
from tests.optimization import ten_steps

ROOT = Path(__file__).parents[2]
RATE = 0.05
# Keras' `epsilon` is where TensorFlow has it for Adam, and where the paper has it for LAMB.
OPTIONS = {
    "adam": {"opt_epsilon": 1e-3},
    "adamw": {"adamw_epsilon": 1e-3, "optimizer_weight_decay": 0.1, "no_weight_decay": ""},
    "lamb": {"lamb_epsilon": 1e-3, "optimizer_weight_decay": 0.0, "no_weight_decay": ""},
    "nesterov": {"momentum": 0.8},
    "momentum": {"momentum": 0.8},
}


@functools.cache
def _of_keras():
    """What `keras_steps` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.optimization.keras_steps"],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_ten_steps(name):
    """Ten steps from the same start with the same gradients end at the same values."""
    expected = _of_keras()["steps"].get(name)
    if expected is None:
        pytest.skip(f"this Keras has no {name}")
    found = ten_steps.run(build_optimizer(RATE, OptimizerOptions(optimizer=name, **OPTIONS[name])))
    for variable, values in found.items():
        np.testing.assert_allclose(
            values, expected[variable], rtol=2e-5, atol=2e-6, err_msg=variable
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("cosine", {"end_learning_rate": RATE / 4, "schedule_epochs": 0.8}),
        # Keras goes to the next value after the boundary, here it is at it.
        (
            "piecewise",
            {"learning_rate_boundaries": "0.3,0.6", "learning_rate_factors": "0.5,0.125"},
        ),
    ],
)
def test_ten_rates(kind, options):
    """The rates of ten steps are those of Keras; an epoch has ten steps."""
    settings = LearningRateOptions(learning_rate=RATE, learning_rate_decay_type=kind, **options)
    step = tf.placeholder(tf.int64, [])
    rate = build_learning_rate(settings, step, 10)
    with tf.Session() as session:
        found = [session.run(rate, {step: at}) for at in range(ten_steps.STEPS)]
    assert found == pytest.approx(_of_keras()["rates"][kind], rel=1e-5)
