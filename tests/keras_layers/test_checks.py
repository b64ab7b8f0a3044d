"""What clones cannot train of Keras says so at once, by name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import create_clones
from tests.goldens import LogicalDevices
from tests.keras_layers.models import KERASES, normalizes_in_graphs

ROOT = Path(__file__).parents[2]
BOTH = pytest.mark.parametrize("library", KERASES.values(), ids=KERASES)


def _build(layer, shape=(4, 6), **options):
    config = LogicalDevices(**{"num_clones": 2, **options})
    return create_clones(config, lambda: layer(tf.ones(shape)))


def test_a_dynamic_layer():
    """A layer that works eagerly only is named."""

    class Eager(KERASES["tf_keras"].layers.Layer):
        def call(self, x):
            return x

    with pytest.raises(ValueError, match=r"work in a graph, got the Eager 'odd' with dynamic=True"):
        _build(Eager(dynamic=True, name="odd"))


def test_run_eagerly():
    """A model that was compiled to run eagerly is named."""
    keras = KERASES["keras"]
    model = keras.Sequential([keras.layers.Dense(2)], name="odd")
    model.compile("sgd", "mse", run_eagerly=True)
    with pytest.raises(ValueError, match=r"got the Sequential 'odd' with run_eagerly=True"):
        _build(model)


@BOTH
@pytest.mark.parametrize("options", [{}, {"num_clones": 1, "accumulate_steps": 2}])
def test_a_stateful_layer(library, options):
    """A layer that carries a state from batch to batch is for one clone."""
    layer = library.layers.GRU(3, stateful=True, name="odd")
    with pytest.raises(ValueError, match=r"must not be stateful with 2 clones.*GRU 'odd'"):
        _build(layer, (4, 5, 6), **options)


@BOTH
def test_one_clone_may_be_stateful(library):
    """One clone has the state for itself: what it assigns is an update op."""
    _build(library.layers.GRU(3, stateful=True), (4, 5, 6), num_clones=1)
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 1


@pytest.mark.parametrize(
    "library",
    [
        KERASES["keras"],
        pytest.param(
            KERASES["tf_keras"],
            marks=pytest.mark.not_v1("TensorFlow 1's own error comes first, and names the layer"),
        ),
    ],
    ids=["keras", "tf_keras"],
)
def test_an_assignment_in_a_loop(library):
    """What each clone would assign in a loop is named, and its layer."""

    class Counting(library.layers.Layer):
        def build(self, shape):
            self.count = self.add_weight(
                shape=(), initializer="zeros", trainable=False, name="count"
            )
            super().build(shape)

        def call(self, x):
            def body(i, y):
                self.count.assign(self.count + 1.0)
                return i + 1, y

            return tf.while_loop(lambda i, _: i < 3, body, (0, x))[1]

    with pytest.raises(ValueError, match=r"got .*count assigned in one of the layer 'odd'"):
        _build(Counting(name="odd"))


def test_a_model_of_another_graph():
    """A model that was made in another graph is named."""
    keras = KERASES["keras"]
    with tf.Graph().as_default():
        layer = keras.layers.Dense(2, name="odd")
        layer.build((None, 6))
    with pytest.raises(ValueError, match=r"kernel:0 of 'odd' made in another graph; make it in"):
        _build(layer)


_IMPORTS = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()

def kerases():
    return {name for name in sys.modules if name.split(".")[0] in ("keras", "tf_keras")}

before = kerases()  # TensorFlow may have imported one
import model_deploy

def model_fn():
    import tf_keras
    x = tf_keras.layers.BatchNormalization()(tf.ones([4, 6]), training=True)
    tf.losses.add_loss(tf.reduce_mean(x))

config = model_deploy.DeploymentConfig(num_clones=2)
model_deploy.create_clones(config, lambda: tf.losses.add_loss(tf.ones([])))
assert kerases() == before
assert "tf_keras" not in sys.modules
model_deploy.create_clones(config, model_fn)
print(len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)), len(tf.trainable_variables()))
"""


def _program(source, **environment):
    return subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_another_backend(monkeypatch):
    """A Keras that says it computes with something else is told what to set."""
    keras = KERASES["keras"]
    layer = keras.layers.Dense(2, name="odd")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="have the backend 'tensorflow', got 'jax' for the Dense"):
        _build(layer)


@pytest.mark.slow
@pytest.mark.one_mode
def test_keras_comes_when_the_program_imports_it():
    """Clones import no Keras; one that `model_fn` imports first is seen all the same."""
    done = _program(_IMPORTS)
    assert done.stdout.split() == ["4", "2"], done.stderr


@BOTH
def test_an_assignment_to_what_the_chief_updates(library):
    """A layer that assigns to its trained kernel is refused where the chief updates for all."""
    if not normalizes_in_graphs(library):
        pytest.skip("this tf-keras cannot call the layer in a graph")
    config = {"num_ps_tasks": 1, "num_replicas": 2, "replicas_to_aggregate": 2}
    layer = library.layers.SpectralNormalization(library.layers.Dense(2))
    with pytest.raises(ValueError, match=r"must not assign to a variable .*, got .*/kernel ass"):
        _build(lambda x: layer(x, training=True), **config)
