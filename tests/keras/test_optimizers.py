"""Keras optimizers as TensorFlow's: the steps that Keras makes, and what is refused."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import tf_keras

from model_deploy.keras import translate_optimizer
from tests import laws
from tests.keras import optimizers
from tests.optimization import ten_steps

ROOT = Path(__file__).parents[2]
LIBRARIES = {"keras": keras, "tf_keras": tf_keras}


@functools.cache
def _of_keras():
    """The ten steps of each case of each library that the program prints."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.keras.optimizers", *LIBRARIES],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _ten_steps(library, name, sparse):
    """The values of each variable after each step of the translation."""
    made = optimizers.make_variables(library)
    variables = {name: each.value for name, each in made.items()} if library == "keras" else made
    step = tf.train.get_or_create_global_step()
    optimizer = optimizers.make(library, name)
    translated, _, clip_norm = translate_optimizer(optimizer, step, made.values)
    tensors, at = ten_steps.feeds(sparse)
    gradients = [tensors[name] for name in ten_steps.SHAPES]
    if clip_norm is not None:  # that is what `deploy` is told
        gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
    pairs = list(zip(gradients, variables.values(), strict=True))
    update = translated.apply_gradients(pairs, global_step=step)
    found = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(ten_steps.STEPS):
            session.run(update, at(number))
            found.append(session.run(variables))
    return {name: np.stack([values[name] for values in found]) for name in ten_steps.SHAPES}


def _can_have(library, name, sparse, kind):
    """`deploy` adds rows up before it clips by the norm of all gradients."""
    del library, kind
    return not (sparse and name == "global_clipnorm")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "name", "sparse", "variable_kind"),
    laws.covering([LIBRARIES, optimizers.OPTIMIZERS, [False, True], laws.KINDS], _can_have),
    indirect=["variable_kind"],
)
@pytest.mark.usefixtures("variable_kind")
def test_ten_steps(library, name, sparse):
    """Ten steps with the same gradients, dense or as rows, end where Keras' dense ones do."""
    found = _ten_steps(library, name, sparse)
    for variable, values in _of_keras()[library][name].items():
        np.testing.assert_allclose(found[variable], values, rtol=1e-5, atol=2e-6, err_msg=variable)


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("name", ["adam_polynomial", "adamw", "excluded"])
def test_ten_steps_by_rows(name):
    """Ten steps of rows, each of which costs these rows, end where Keras' dense ones do."""
    made = optimizers.make_variables("keras")
    step = tf.train.get_or_create_global_step()
    optimizer = optimizers.make("keras", name)
    translated = translate_optimizer(optimizer, step, made.values, by_rows=True).optimizer
    tensors, at = ten_steps.feeds(True)
    pairs = [(tensors[each], made[each].value) for each in ten_steps.SHAPES]
    update = translated.apply_gradients(pairs, global_step=step)
    current = {each: translated.current(variable.value) for each, variable in made.items()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(ten_steps.STEPS):
            session.run(update, at(number))
        found = session.run(current)
    for variable, values in _of_keras()["keras"][name].items():
        np.testing.assert_allclose(
            found[variable], values[-1], rtol=1e-5, atol=2e-6, err_msg=variable
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(
            lambda: "sgd", "must be one of Adam, AdamW with by_rows=True, got SGD", id="sgd"
        ),
        pytest.param(
            lambda: keras.optimizers.Adam(clipnorm=1.0),
            "clipnorm and clipvalue of the optimizer must not be set with by_rows=True",
            id="clipped",
        ),
    ],
)
def test_not_by_rows(make, message):
    """What cannot be done by rows is refused."""
    with pytest.raises(ValueError, match=message):
        translate_optimizer(make(), tf.train.get_or_create_global_step(), by_rows=True)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        pytest.param({"use_ema": True}, "use_ema of the optimizer Adam must not", id="ema"),
        pytest.param({"amsgrad": True}, "amsgrad of the optimizer Adam must not", id="amsgrad"),
    ],
)
def test_settings_without_translation(library, settings, message):
    """A setting that would be lost is named, with what to do."""
    optimizer = LIBRARIES[library].optimizers.Adam(**settings)
    with pytest.raises(ValueError, match=f"^{message} be set, got True: "):
        translate_optimizer(optimizer, tf.train.get_or_create_global_step())


def test_settings_of_keras_3():
    """What the deployment does is not the optimizer's."""
    step = tf.train.get_or_create_global_step()
    with pytest.raises(ValueError, match=r"got 8: DeploymentConfig\(loss_scale="):
        translate_optimizer(keras.optimizers.SGD(loss_scale_factor=8), step)
    with pytest.raises(ValueError, match=r"got 2: DeploymentConfig\(accumulate_steps="):
        translate_optimizer(keras.optimizers.SGD(gradient_accumulation_steps=2), step)


class Backwards(keras.optimizers.SGD):
    """A user's own optimizer, whose steps are its own."""

    def update_step(self, gradient, variable, learning_rate):
        """Goes up."""
        super().update_step(-gradient, variable, learning_rate)


@pytest.mark.parametrize(
    ("make", "got"),
    [
        pytest.param(keras.optimizers.Nadam, r"keras\..*Nadam", id="nadam"),
        pytest.param(keras.optimizers.Lion, r"keras\..*Lion", id="lion"),
        pytest.param(tf_keras.optimizers.Adamax, r"tf_keras\..*Adamax", id="tf_keras"),
        pytest.param(tf_keras.optimizers.legacy.SGD, r"tf_keras\..*SGD", id="legacy"),
        pytest.param(Backwards, r"tests\..*Backwards", id="subclass"),
        pytest.param(tf.train.AdamOptimizer, r"tensorflow\..*Adam", id="tensorflow"),
        pytest.param(lambda: 0.1, r"builtins\.float", id="number"),
        pytest.param(lambda: "lion", r"keras\..*Lion", id="name"),
    ],
)
def test_other_optimizers(make, got):
    """An optimizer that is not translated is named, with those that are."""
    message = f"^optimizer must be one of Adadelta, .*, SGD of Keras .*, got {got}"
    with pytest.raises(ValueError, match=message):
        translate_optimizer(make(), tf.train.get_or_create_global_step())


def test_unknown_name():
    """A name that Keras does not know is named, too."""
    with pytest.raises(ValueError, match=r"^optimizer must be one of .*, sgd, got 'adamm'"):
        translate_optimizer("adamm", tf.train.get_or_create_global_step())


def test_name():
    """A name stands for the optimizer with Keras' own settings, which leaves no variable behind."""
    step = tf.train.get_or_create_global_step()
    found = translate_optimizer("rmsprop", step)
    assert isinstance(found.optimizer, tf.train.RMSPropOptimizer)
    with tf.Session() as session:
        assert session.run(found.learning_rate) == np.float32(0.001)
    translate_optimizer(keras.optimizers.Adam(), step)
    assert tf.global_variables() == [step]


def test_rate_of_a_callable():
    """A function without arguments is called for the rate."""
    step = tf.train.get_or_create_global_step()
    found = translate_optimizer(keras.optimizers.SGD(lambda: 0.25), step)
    with tf.Session() as session:
        assert session.run(found.learning_rate) == 0.25


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_optimizer_of_another_graph(library):
    """An optimizer with a schedule serves several graphs, none of which it was made in."""
    with tf.Graph().as_default():
        kinds = LIBRARIES[library].optimizers
        made = kinds.Adam(kinds.schedules.ExponentialDecay(0.1, 2, 0.25))
    for step in (0, 2):
        with tf.Graph().as_default(), tf.Session() as session:
            _, rate, _ = translate_optimizer(made, tf.constant(step, tf.int64))
            assert session.run(rate) == pytest.approx(0.1 * 0.25 ** (step / 2))
