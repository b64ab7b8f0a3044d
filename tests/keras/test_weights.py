"""Weights of Keras models: files, checkpoints, and what Keras makes of them."""

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

import model_deploy
from model_deploy import keras as keras_lib
from model_deploy import training
from tests.keras import models

ROOT = Path(__file__).parents[2]


# Library and settings of the runs whose weights `model.predict` gets.
RUNS = {
    "called": ("keras", {}),
    "copied": ("tf_keras", {"copy_clones": True}),
    "all-reduce": ("keras", {"all_reduce": True}),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folder of each run, by its name."""
    folders = {name: tmp_path_factory.mktemp(name) for name in RUNS}
    for name, (library, settings) in RUNS.items():
        config = model_deploy.DeploymentConfig(num_clones=2, clone_on_cpu=True, **settings)
        with tf.Graph().as_default():
            _train(_deploy(library, config), folders[name])
    return folders


@pytest.fixture(scope="module")
def in_keras(runs, tmp_path_factory):
    """What `tests.keras.models` prints, which runs eagerly, and the file that `fit` starts from."""
    start = str(tmp_path_factory.mktemp("fit") / "start.weights.h5")
    asked = ["fit", "keras", start]
    for name, (library, _) in RUNS.items():
        asked += ["predict", library, str(runs[name])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.keras.models", *asked],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    return start, dict(zip(["fit", *RUNS], answers, strict=True))


def _deploy(library, config, build=None):
    """The small model on its examples, in order, divided over the clones."""
    size = models.BATCH_SIZE // config.num_clones
    data = tf.data.Dataset.from_tensor_slices((models.IMAGES, models.LABELS)).repeat()
    return keras_lib.deploy_model(
        config,
        build or functools.partial(models.build, library),
        models.loss(library),
        models.optimizer(library),
        data.batch(size, drop_remainder=True),
        metrics=["accuracy"],
    )


def _train(model, folder, **options):
    model_deploy.train(model, folder, max_steps=models.STEPS, log_every_n_steps=100, **options)


@pytest.mark.slow
def test_fit(in_keras, tmp_path):
    """Ten steps of a deployment end where ten of `model.fit` do, batch-norm averages too."""
    start, answers = in_keras
    model = _deploy("keras", model_deploy.DeploymentConfig(clone_on_cpu=True))
    _train(model, tmp_path / "run", init_fn=keras_lib.init_fn(model.keras_model, start))
    found = keras_lib.read_checkpoint(model.keras_model, tmp_path / "run")
    for weight, value, expected in zip(
        model.keras_model.weights, found, answers["fit"], strict=True
    ):
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-5, err_msg=weight.path)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_predict(name, runs, in_keras):
    """What `model.predict` says with the weights of a run is what its evaluation says."""
    library, _ = RUNS[name]
    found = training.evaluate(
        lambda batch: (models.build(library)(batch[0], training=False), batch[1]),
        lambda: tf.data.make_one_shot_iterator(
            tf.data.Dataset.from_tensors((models.IMAGES, models.LABELS))
        ).get_next(),
        runs[name],
    )
    _, answers = in_keras
    own = np.array(answers[name])[np.arange(models.EXAMPLES), models.LABELS]
    np.testing.assert_allclose(found.predictions.label_probability, own, rtol=0, atol=1e-5)
    assert np.ptp(own) > 0.1  # or else they would agree whatever the weights are


@pytest.mark.parametrize("name", ["a.weights.h5", "a.keras"])
def test_export_and_start(name, tmp_path):
    """What a run has exported is what another one starts from."""
    config = model_deploy.DeploymentConfig(clone_on_cpu=True)
    model = _deploy("keras", config).keras_model
    path = tmp_path / "new" / name
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        checkpoint = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
        saved = session.run([weight.value for weight in model.weights])
        for _ in range(2):  # a file that is there is replaced
            keras_lib.export_checkpoint(model, checkpoint, path)
    assert [each.name for each in path.parent.iterdir()] == [name]
    with tf.Graph().as_default(), tf.Session() as session:
        other = _deploy("keras", config).keras_model
        session.run(tf.global_variables_initializer())
        keras_lib.init_fn(other, path)(session)
        loaded = session.run([weight.value for weight in other.weights])
    for value, expected in zip(loaded, saved, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_averages(tmp_path):
    """With `use_averages` what was averaged comes as its average, the rest as it is."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    names = [weight.value.op.name for weight in model.weights]
    average = tf.get_variable(f"{names[0]}/ExponentialMovingAverage", initializer=[[3.0], [4.0]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
        bias = session.run(model.weights[1].value)
    kernel, found = keras_lib.read_checkpoint(model, path, use_averages=True)
    np.testing.assert_array_equal(kernel, [[3.0], [4.0]])
    np.testing.assert_array_equal(found, bias)
    assert average.shape.as_list() == [2, 1]


def _model(*units):
    layers = [keras.layers.Dense(each) for each in units]
    return keras.Sequential([keras.Input((2,)), *layers])


def _checkpoint(folder, model):
    """A checkpoint of the weights, by their paths."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saved = {weight.path: weight.value for weight in model.weights}
        return tf.train.Saver(saved).save(session, str(folder / "model.ckpt"))


def test_other_numbers(tmp_path):
    """A model that was made later has layers with other numbers, which are matched in order."""
    first = _model(3, 2)
    path = _checkpoint(tmp_path, first)
    for _ in range(9):  # so that numbers get two digits
        later = _model(3, 2)
    assert {weight.path for weight in later.weights}.isdisjoint(w.path for w in first.weights)
    for one, other in zip(
        keras_lib.read_checkpoint(first, path), keras_lib.read_checkpoint(later, path), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_other_checkpoint(tmp_path):
    """A checkpoint of another model is refused by name and shape."""
    path = _checkpoint(tmp_path, _model(3, 2))
    with pytest.raises(ValueError, match=r"without sequential.*/kernel, .*/bias in these"):
        keras_lib.read_checkpoint(_model(3, 4), path)
    with pytest.raises(ValueError, match="checkpoint_path must be a checkpoint"):
        keras_lib.read_checkpoint(_model(3, 4), tmp_path / "none")


def test_file_of_another_model(tmp_path):
    """A file without all weights of the model, in their shapes, is refused."""
    model, path = _model(3, 2), tmp_path / "two.weights.h5"
    keras_lib.export_checkpoint(model, _checkpoint(tmp_path, model), path)
    with pytest.raises(ValueError, match=r"path must have all weights of 'sequential.*/kernel"):
        keras_lib.init_fn(_model(3, 4), path)


def test_load_checkpoint_in_a_graph(tmp_path):
    """In a graph a model cannot be given weights at once, which is said."""
    with pytest.raises(RuntimeError, match="load_checkpoint is for eager execution"):
        keras_lib.load_checkpoint(_model(1), tmp_path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        pytest.param(
            lambda folder: keras_lib.read_weights(_model(1), folder / "a.ckpt"),
            r"path must end with \.weights\.h5, \.keras, \.h5, got '.*a\.ckpt'",
            id="kind",
        ),
        pytest.param(
            lambda folder: keras_lib.read_weights(_model(1), folder / "a.keras"),
            "path must be a file of Keras weights, got .*a.keras, which is not there",
            id="missing",
        ),
        pytest.param(
            lambda folder: keras_lib.read_weights(_model(1), _garbage(folder)),
            "path must be a file with weights of the model 'sequential.*', got .*bad.weights.h5: ",
            id="garbage",
        ),
        pytest.param(
            lambda folder: keras_lib.read_weights(models.build("tf_keras"), _garbage(folder)),
            "path must be .*: tf-keras reads and writes its files eagerly",
            id="tf_keras",
        ),
        pytest.param(
            lambda folder: keras_lib.init_fn(keras.Sequential([keras.layers.Dense(1)]), folder),
            "model must be built before it gets weights, got 'sequential.*' without any",
            id="not-built",
        ),
        pytest.param(
            lambda folder: keras_lib.export_checkpoint(_model(1), folder, folder / "a.h5"),
            r"path must end with \.weights\.h5 or \.keras, got '.*a\.h5'",
            id="export",
        ),
        pytest.param(
            lambda folder: keras_lib.read_weights(keras.optimizers.SGD(), _garbage(folder)),
            r"model must be a Keras model, got keras\..*SGD",
            id="no-model",
        ),
    ],
)
def test_rejects(call, message, tmp_path):
    """What is wrong with a file or a model is said with its name."""
    with pytest.raises(ValueError, match=f"^{message}"):
        call(tmp_path)


def _garbage(folder):
    path = folder / "bad.weights.h5"
    path.write_bytes(b"no HDF5")
    return path
