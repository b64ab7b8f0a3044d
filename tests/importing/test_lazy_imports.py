"""What TensorFlow and tf-slim import without using it comes when it is used first."""

import gc
import os
import subprocess
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

from model_deploy.importing import lazy_imports
from model_deploy.inputs import get_dataset

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
_NOT_NEEDED = ("keras", "tf_keras", "sklearn", "matplotlib", "pooch", "scipy", "h5py")


def _output_of(program, **env):
    return subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    ).stdout.split()


def test_a_program_that_uses_none_imports_none():
    """Deploying a model of TF-Slim's layers needs none of the packages that take long.

    Python looks for no garbage among TensorFlow's modules, and goes on as it did before.
    """
    program = f"""
import gc, sys
before = gc.get_stats()[2]["collections"]
import model_deploy.importing.lazy_imports
import tensorflow as tf
print(gc.get_freeze_count() > 100_000, gc.isenabled(), gc.get_stats()[2]["collections"] - before)
from model_deploy import deploy, train, slim
slim.losses.metric_learning.HAS_SKLEARN, tf.__loader__.path, tf.keras
print(*[name for name in {_NOT_NEEDED} if name in sys.modules])
"""
    assert _output_of(program) == ["True", "True", "0"]


@pytest.mark.slow
def test_keras_comes_when_it_is_used():
    """TensorFlow's names of Keras, and Keras itself, are there when asked for, whichever first."""
    uses = [
        "tf.losses.MeanSquaredError()",
        "from tensorflow.keras import layers; import tensorflow.keras.models",
        "dense = tf.keras.layers.Dense; import keras; assert keras.layers.Dense is dense",
    ]
    # Each use is the first one of a process that has imported TensorFlow already.
    program = f"""
import os, sys
import model_deploy
import tensorflow as tf
for use in {uses}:
    child = os.fork()
    if child == 0:
        before = "keras" in sys.modules
        exec(use)
        print(before, "keras" in sys.modules, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, use
"""
    assert _output_of(program) == ["False", "True"] * len(uses)


@pytest.mark.slow
def test_keras_first_is_as_without():
    """A program that imports Keras, which imports TensorFlow, gets it whole."""
    program = "import model_deploy, keras, tensorflow as tf; print(tf.keras.Model is keras.Model)"
    assert _output_of(program) == ["True"]


@pytest.mark.slow
def test_tf_keras_is_imported_where_the_environment_says_so():
    """tf-keras registers its optimizers, so TensorFlow imports it as ever."""
    program = "import model_deploy, sys, tensorflow; print('tf_keras' in sys.modules)"
    assert _output_of(program, TF_USE_LEGACY_KERAS="1") == ["True"]


def test_refused_packages_are_found_but_not_imported():
    """A package is refused within the block alone, and can be looked for in it."""
    program = """
import importlib.util
from model_deploy.importing import lazy_imports
with lazy_imports.refusing("json", "yaml"):
    print(importlib.util.find_spec("yaml").name)
    try:
        import yaml
    except ImportError as error:
        print(error.name)
import yaml
print(yaml.__name__)
"""
    assert _output_of(program) == ["yaml", "yaml", "yaml"]


def test_garbage_is_looked_for_as_before():
    """A program that has turned the search off finds it off after an import."""
    gc.disable()
    try:
        with lazy_imports.keeping_all():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_in_an_import():
    """Garbage is looked for again, among what the import made too."""
    made = []

    def fail():
        module = types.ModuleType("a_module_that_refers_to_itself")
        module.itself = module
        made.append(weakref.ref(module))
        raise ImportError

    with pytest.raises(ImportError), lazy_imports.keeping_all():
        fail()
    assert gc.isenabled()
    gc.collect()
    assert made[0]() is None


def test_a_later_module_has_the_names_of_the_module():
    """A name that is asked for is the module's own."""
    assert lazy_imports.Later("os.path").join is os.path.join


@pytest.mark.slow
def test_digits_are_those_of_scikit_learn():
    """Read from the file, the 1,797 labels and images are those that `load_digits` gives."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    raw = load_digits()
    order = np.random.RandomState(1797).permutation(1797)
    images, labels = get_dataset("digits", "train").source.arrays
    np.testing.assert_array_equal(labels, raw.target[order[:1437]])
    # The centres of the first and the last pixels lie outside of the enlarged ones' centres.
    corners = np.round(raw.images[order[:1437]][:, 0, 0] * 255 / 16)
    np.testing.assert_array_equal(images[:, 0, 0, 0], corners)
