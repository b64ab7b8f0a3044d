"""Keras 2 as programs of TensorFlow 1 import it, as `tensorflow.keras` or `keras`: tf-keras."""

import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from model_deploy.tf1 import lenient
from model_deploy.tf1.contrib.legacy_keras import KERAS
from model_deploy.tf1.old_module import OldModule

_CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D")
_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "Adamax", "Nadam", "RMSprop", "SGD")
# Parts of the package `keras` -> the files that they had, whose names are in the part.
_FILES = {
    "backend": ("tensorflow_backend",),
    "engine": (
        *("base_layer", "input_layer", "network", "saving", "sequential", "topology", "training"),
    ),
    "layers": (
        *("advanced_activations", "convolutional", "convolutional_recurrent", "core"),
        *("cudnn_recurrent", "embeddings", "local", "merge", "noise", "normalization"),
        *("pooling", "recurrent", "wrappers"),
    ),
    "utils": (
        *("conv_utils", "data_utils", "generic_utils", "io_utils", "layer_utils"),
        *("multi_gpu_utils", "np_utils", "training_utils", "vis_utils"),
    ),
}
# Parts that are not one module of tf-keras under their own name -> the modules.
_PROVIDERS = {
    "engine": ("layers", "models", "utils", ""),
    "objectives": ("losses",),
}
_PARTS = {*_FILES, *_PROVIDERS, "estimator", "optimizers"}


@functools.cache
def find(path: str) -> Any:
    """A module of Keras 2.

    Args:
      path: its name below `keras`; empty for the package.

    Raises:
      ImportError: if there is none.
    """
    name = f"tensorflow.keras.{path}".rstrip(".")
    part, _, file = path.partition(".")
    if not path:
        made = {each: functools.partial(find, each) for each in _PARTS}
        version = functools.partial(_member, "tf_keras", "__version__")
        return OldModule(name, [KERAS], {**made, "__version__": version})
    if path == "estimator":
        # `model_to_estimator` imports a file of Estimator when it is called.
        importlib.import_module("model_deploy.estimator").load()
    if file in _FILES.get(part, ()):
        today = f"tf_keras.src.{part}.{file}"
        return OldModule(name, [find(part), *([today] if _exists(today) else [])])
    if path in _PARTS and path != "estimator":
        providers = [f"{KERAS}.{each}".rstrip(".") for each in _PROVIDERS.get(path, (path,))]
        return OldModule(name, providers, _extras(path))
    try:
        return importlib.import_module(f"{KERAS}.{path}")
    except ImportError:
        raise ImportError(f"keras.{path} is not in tf-keras, which has what Keras 2 had") from None


def _extras(part: str) -> dict[str, Callable[[], Any]]:
    """Names of a part that tf-keras has elsewhere, or with another meaning."""
    made: dict[str, Callable[[], Any]] = {
        file: functools.partial(find, f"{part}.{file}") for file in _FILES.get(part, ())
    }
    if part == "layers":
        made |= convolutions(f"{KERAS}.layers")
        made["Lambda"] = _lambda
    if part == "utils":
        made["multi_gpu_model"] = functools.partial(
            _member, "model_deploy.tf1.multi_gpu", "multi_gpu_model"
        )
    if part == "optimizers":
        module = f"{KERAS}.optimizers"
        made |= {each.lower(): functools.partial(_member, module, each) for each in _OPTIMIZERS}
    return made


@functools.cache
def convolutions(module: str) -> dict[str, Callable[[], Any]]:
    """The layers of a module of tf-keras that programs derive theirs from."""

    def make(name: str) -> Callable[[], Any]:
        return functools.cache(lambda: lenient.with_convolution_op(_member(module, name)))

    return {name: make(name) for name in _CONVOLUTIONS}


@functools.cache
def _lambda() -> type:
    return lenient.with_variables(_member(f"{KERAS}.layers", "Lambda"))


def _member(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
