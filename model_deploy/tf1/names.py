"""What `import tensorflow` and what is below it mean in a program of TensorFlow 1."""

import contextlib
import functools
import importlib
import importlib.util
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.importing import with_moved_names
from model_deploy.tf1 import keras_2, lenient
from model_deploy.tf1.contrib import contrib_module
from model_deploy.tf1.contrib.legacy_keras import CELLS, KERAS, LAYERS
from model_deploy.tf1.gone import advice
from model_deploy.tf1.old_module import OldModule

_TRACKING = "tensorflow.python.training.tracking"
# Modules of TensorFlow 1 -> the modules of today that have what was in them.
_MOVED: dict[str, tuple[str, ...]] = {
    "tensorflow.python.keras": (KERAS,),
    "tensorflow.nn.rnn_cell": (CELLS,),
    "tensorflow.python.ops.rnn_cell": (CELLS, "tensorflow.python.ops.rnn_cell"),
    "tensorflow.python.ops.rnn_cell_impl": (CELLS, "tensorflow.python.ops.rnn_cell_impl"),
    "tensorflow.python.layers.core": (LAYERS,),
    "tensorflow.python.layers.convolutional": (LAYERS,),
    "tensorflow.python.layers.pooling": (LAYERS,),
    "tensorflow.python.layers.normalization": (LAYERS,),
    "tensorflow.python.layers.layers": (LAYERS,),
    "tensorflow.python.layers.base": (LAYERS, "tensorflow.python.layers.base"),
    "tensorflow.python.pywrap_tensorflow": (
        "tensorflow.python.pywrap_tensorflow",
        "tensorflow.compat.v1.train",  # NewCheckpointReader
    ),
    "tensorflow.python.summary.event_accumulator": (
        "tensorboard.backend.event_processing.event_accumulator",
    ),
    "tensorflow.python.training.training_ops": ("tensorflow.python.ops.gen_training_ops",),
    _TRACKING: ("tensorflow.python.trackable", "tensorflow.python.checkpoint"),
    f"{_TRACKING}.base": ("tensorflow.python.trackable.base",),
    f"{_TRACKING}.data_structures": ("tensorflow.python.trackable.data_structures",),
    f"{_TRACKING}.graph_view": ("tensorflow.python.checkpoint.graph_view",),
    f"{_TRACKING}.tracking": (
        "tensorflow.python.trackable.autotrackable",
        "tensorflow.python.trackable.resource",
        "tensorflow.python.trackable.base",
    ),
    f"{_TRACKING}.util": ("tensorflow.python.checkpoint.checkpoint",),
    "tensorflow.python.platform.googletest": ("tensorflow.python.platform.googletest",),
    "tensorflow.tensorboard": ("tensorboard",),
}
# The folders of Keras' files in TensorFlow 1.4 and before.
_FILES_OF_KERAS = re.compile(
    r"tensorflow\.(contrib\.keras\.python|python\.keras\._impl)(\.keras)?\b"
)
# Files of TPUEstimator, which TensorFlow itself had for a while.
_OF_TPU_ESTIMATOR = {
    f"tensorflow.python.tpu.{file}" for file in ("tpu_config", "tpu_context", "tpu_estimator")
}
# Public module -> names that TensorFlow has with another meaning, or no longer.
_OTHERS: dict[str, dict[str, Any]] = {
    "tensorflow.logging": {"flush": lenient.flush},
    "tensorflow.train": {"ExponentialMovingAverage": lenient.ExponentialMovingAverage},
}


@functools.cache
def root() -> OldModule:
    """`tensorflow` itself."""
    below = ("compat", "contrib", "estimator", "keras", "layers", "nn", "test", "python")
    extras: dict[str, Callable[[], Any]] = {
        name: functools.partial(find, f"tensorflow.{name}") for name in below
    }
    extras["pywrap_tensorflow"] = functools.partial(find, "tensorflow.python.pywrap_tensorflow")
    for function in (lenient.get_variable, lenient.name_scope, lenient.placeholder):
        extras[function.__name__] = _giving(function)
    return _Public("tensorflow", [tf], extras)


class _Public(OldModule):
    """A public module of TensorFlow; those below it are such modules, too, which know advice."""

    def _find(self, name: str) -> Any:
        value = super()._find(name)
        if isinstance(value, types.ModuleType) and not isinstance(value, OldModule):
            name = f"{self.__name__}.{name}"
            others = _OTHERS.get(name, {}).items()
            return _Public(name, [value], {each: _giving(other) for each, other in others})
        return value


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


@functools.cache
def find(name: str) -> Any:
    """A module of TensorFlow 1 by the name under which it was imported.

    Raises:
      ImportError: if it is nowhere; the message says what to use.
    """
    name = _FILES_OF_KERAS.sub("tensorflow.keras", name)
    if name.split(".")[:2] == ["tensorflow", "contrib"]:
        return contrib_module(name)
    # Of a program that was being moved to TensorFlow 2.
    name = f"{name}.".replace("tensorflow.compat.v1.", "tensorflow.", 1).rstrip(".")
    if re.match(r"(tensorflow\.)?keras\b", name):
        return keras_2.find(name.removeprefix("tensorflow.").removeprefix("keras").lstrip("."))
    if name in _SPECIAL:
        return _SPECIAL[name]()
    if name in _MOVED:
        convolutions = keras_2.convolutions(LAYERS) if _MOVED[name] == (LAYERS,) else {}
        cells = lenient.cells(CELLS) if CELLS in _MOVED[name] else {}
        files = {
            each.rpartition(".")[2]: functools.partial(find, each)
            for each in _MOVED
            if each.rpartition(".")[0] == name
        }
        return OldModule(name, _MOVED[name], {**files, **convolutions, **cells})
    if name.split(".")[:2] == ["tensorflow", "python"]:
        return _python_module(name)
    return _public_module(name)


def link(name: str) -> None:
    """Makes each module on the way to one an attribute of the one above it, as `import` does."""
    parts = name.split(".")
    for depth in range(1, len(parts)):
        parent, below = find(".".join(parts[:depth])), parts[depth]
        if isinstance(parent, OldModule) and not hasattr(parent, below):
            setattr(parent, below, find(".".join(parts[: depth + 1])))


def _public_module(name: str) -> Any:
    """One of TensorFlow's public modules, such as `tensorflow.train`, or one of its files."""
    parent, _, last = name.rpartition(".")
    try:
        return getattr(find(parent), last)
    except (AttributeError, ImportError):
        pass
    try:  # such as `tensorflow.core.example.example_pb2`
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(advice(name)) from None


class _PythonModule(OldModule):
    """A module of TensorFlow's own files; what has left it is in a public module, mostly."""

    def __init__(self, module: types.ModuleType) -> None:
        # Such as `tf.graph_util` for `tensorflow.python.framework.graph_util`.
        namesake = getattr(tf, module.__name__.rpartition(".")[2], None)
        public = [namesake] if isinstance(namesake, types.ModuleType) else []
        providers = (with_moved_names(module), *public, tf, tf.nn, tf.train)
        super().__init__(module.__name__, providers)
        self.__dict__["_is_package"] = hasattr(module, "__path__")

    def _find(self, name: str) -> Any:
        module = f"{self.__name__}.{name}"
        is_moved = module in _MOVED or module in _OF_TPU_ESTIMATOR
        if is_moved or (
            self.__dict__["_is_package"] and importlib.util.find_spec(module) is not None
        ):
            return find(module)
        return super()._find(name)


def _python_module(name: str) -> types.ModuleType:
    if name.split(".")[2:3] == ["estimator"]:
        return _estimator_file(name)
    if name in _OF_TPU_ESTIMATOR:
        return _estimator_file(name.replace(".tpu.", ".estimator.tpu."))
    try:
        return _PythonModule(importlib.import_module(name))
    except ImportError:
        raise ImportError(advice(name)) from None


@contextlib.contextmanager
def calling_before_main(function: Callable[[], Any]) -> Iterator[None]:
    """In a `with` block `tf.app.run` calls `function` before it runs the program's `main`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        function()
        return tf.app.run(*args, **kwargs)

    root().__dict__["app"] = OldModule("tensorflow.app", [tf.app], {"run": lambda: run})
    try:
        yield
    finally:
        del root().__dict__["app"]


def _compat() -> OldModule:
    return OldModule("tensorflow.compat", [tf.compat], {"v1": root, "v2": _v2})


@functools.cache
def _v2() -> OldModule:
    """TensorFlow 2's names beside the ones of TensorFlow 1; Estimator was one of them."""
    extras = {"compat": _compat, "estimator": _estimator}
    return OldModule("tensorflow.compat.v2", [tf.compat.v2], extras)


def _estimator() -> OldModule:
    return OldModule("tensorflow.estimator", ["model_deploy.estimator"])


def _estimator_file(name: str) -> types.ModuleType:
    """One of the files of Estimator, which left TensorFlow's own for a package."""
    importlib.import_module("model_deploy.estimator").load()
    return importlib.import_module(name.replace("tensorflow", "tensorflow_estimator", 1))


def _nn() -> OldModule:
    return OldModule("tensorflow.nn", [tf.nn], {"rnn_cell": lambda: find("tensorflow.nn.rnn_cell")})


def _test() -> OldModule:
    # Here, as it makes a class of TensorFlow's test case, which only tests need.
    from model_deploy.tf1.test_case import TestCase  # noqa: PLC0415

    return OldModule(
        "tensorflow.test",
        [tf.test],
        {"TestCase": lambda: TestCase, "mock": lambda: importlib.import_module("unittest.mock")},
    )


def _input_data() -> OldModule:
    return OldModule(
        "tensorflow.examples.tutorials.mnist.input_data", ["model_deploy.tf1.input_data"]
    )


def _parents_of_input_data(name: str, below: str) -> OldModule:
    return OldModule(name, extras={below: lambda: find(f"{name}.{below}")})


_SPECIAL: dict[str, Callable[[], Any]] = {
    "tensorflow": root,
    "tensorflow.compat": _compat,
    "tensorflow.compat.v2": _v2,
    "tensorflow.estimator": _estimator,
    "tensorflow.python.keras.estimator": functools.partial(keras_2.find, "estimator"),
    "tensorflow.layers": lambda: lenient.WithIntegers(
        "tensorflow.layers", [LAYERS], keras_2.convolutions(LAYERS)
    ),
    "tensorflow.nn": _nn,
    "tensorflow.test": _test,
    "tensorflow.examples": lambda: _parents_of_input_data("tensorflow.examples", "tutorials"),
    "tensorflow.examples.tutorials": lambda: _parents_of_input_data(
        "tensorflow.examples.tutorials", "mnist"
    ),
    "tensorflow.examples.tutorials.mnist": lambda: _parents_of_input_data(
        "tensorflow.examples.tutorials.mnist", "input_data"
    ),
    "tensorflow.examples.tutorials.mnist.input_data": _input_data,
}
