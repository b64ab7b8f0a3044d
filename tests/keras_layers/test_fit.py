"""Ten steps of `deploy` are ten steps of `keras.Model.fit`, batch-norm averages included."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import deploy, internals
from tests import harness
from tests.goldens import LogicalDevices
from tests.keras_layers.fit import RATE, STEPS
from tests.keras_layers.models import MODELS

ROOT = Path(__file__).parents[2]
_FORMS = ("mlp", "residual", "subclassed", "recurrent", "dropping", "spectral")
# Dropout of tf-keras draws other numbers in a graph than in eager mode, and eagerly its spectral
# normalization works only where TensorFlow's own Keras is tf-keras.
_NOT_THE_SAME = ("dropping tf_keras", "spectral tf_keras")
# Each with where it is made: both places for each library, and for each form where it has both.
CASES = {
    f"{form} {library}": ("inside", "before")[(i + j) % 2]
    for i, form in enumerate(_FORMS)
    for j, library in enumerate(("keras", "tf_keras"))
    if f"{form} {library}" not in _NOT_THE_SAME
}


@functools.cache
def _of_fit():
    """What `fit` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.keras_layers.fit", *CASES],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(("name", "made"), CASES.items())
def test_ten_steps(name, made):
    """The same model on the same batches ends with the same weights and averages."""
    model, seen, config = MODELS[f"{name} {made}"], [], LogicalDevices()
    model_fn = model.prepare(config, seen)
    batch = [tf.constant(model.features), tf.constant(model.labels)]
    optimizer = tf.train.MomentumOptimizer(RATE, 0.9)
    trained = deploy(config, model_fn, batch, optimizer=optimizer)
    weights = [internals.tf_variable(each) for each in seen[0].weights]
    _, found = harness.run_steps(trained, weights, STEPS)
    expected = _of_fit()[name]
    assert len(found) == len(expected)
    for variable, value, wanted in zip(seen[0].weights, found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5, err_msg=variable.name)
