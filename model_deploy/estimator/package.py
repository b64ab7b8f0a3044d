"""`tensorflow_estimator` 2.15, the last one, on TensorFlow of today: what its modules import.

TensorFlow 2.16 dropped `tf.estimator`, and with it what the package imported of TensorFlow's own
files.  An import hook gives the package's modules, and them alone, an `import` of
their own, for which what was dropped is there; TensorFlow itself is left as it is.  `_SHIMS` names
each module with the release of TensorFlow that dropped it.  The package's `tf.keras` is tf-keras:
Keras 3 has no graph mode, and not what the package calls of Keras 2.
"""

import builtins
import functools
import importlib
import importlib.util
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from model_deploy import internals
from model_deploy.config import DeploymentConfig
from model_deploy.importing import FinderBy

PACKAGE = "tensorflow_estimator"
_INSTALL = "pip install 'model_deploy[estimator]'"
_KERAS_1, _KERAS_2 = "tf_keras.api._v1.keras", "tf_keras.api._v2.keras"


def load() -> types.ModuleType:
    """The package's `tf.estimator` of TensorFlow 1.

    Raises:
      ImportError: if the package is not installed; the message says how to install it.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise ImportError(
            f"tf.estimator is gone since TensorFlow 2.16: {_INSTALL} brings the package of it",
            name=PACKAGE,
        )
    FinderBy(_is_of_package, _run).install()
    return importlib.import_module(f"{PACKAGE}._api.v1.estimator")


class _View(types.ModuleType):
    """A module with some names that are others, or that it does not have.

    Args:
      module: the module; None for one that is gone.
      name: what it is called.
      others: name -> what makes the value.
      release: the release of TensorFlow without the module.
    """

    def __init__(
        self,
        module: types.ModuleType | None,
        name: str,
        others: Mapping[str, Callable[[], Any]],
        release: str = "",
    ) -> None:
        super().__init__(name)
        self.__dict__.update(_module=module, _others=others, _release=release)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_others"]:
            value = self.__dict__["_others"][name]()
            self.__dict__[name] = value
            return value
        if self.__dict__["_module"] is not None:
            return getattr(self.__dict__["_module"], name)
        if name.startswith("__"):
            raise AttributeError(name)
        return _gone(f"{self.__name__}.{name}", self.__dict__["_release"])


def _gone(name: str, release: str) -> type:
    """A class that stands for one that is gone: it can be derived from and asked for, not made."""

    def refuse(*_: object, **__: object) -> None:
        raise ValueError(
            f"{name} must not be used, which TensorFlow {release} dropped: it is for TPUs"
        )

    return type(name.rpartition(".")[2], (), {"__init__": refuse})


def _init_run_config(run_config: Any, tf_config: Mapping[str, Any]) -> None:
    """Reads `TF_CONFIG` for a `RunConfig` with `train_distribute`.

    Raises:
      ValueError: for a cluster and a strategy of `tf.distribute`.
    """
    strategy = run_config.train_distribute
    if tf_config.get("cluster") and not isinstance(strategy, DeploymentConfig):
        raise ValueError(
            "train_distribute must be a DeploymentConfig where TF_CONFIG names a cluster, got "
            f"{type(strategy).__name__}; TensorFlow 2.16 dropped the other way"
        )
    internals.read_tf_config(run_config, tf_config)


class _Exported:
    """`tf_export.api_export`, for names that TensorFlow has no table of any more."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __call__(self, thing: Any) -> Any:
        return thing

    def export_constant(self, *_: object) -> None:
        """A constant is there without being exported."""


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _same(*_: object, **__: object) -> Callable[[Any], Any]:
    return lambda thing: thing


_NO_COORDINATOR = {
    "init_run_config": _giving(_init_run_config),
    "should_run_distribute_coordinator": _giving(lambda config: False),
}
# Module -> what the package finds in it beside its own names, and the release of TensorFlow without
# them; the modules below it that are gone are among these names.
_SHIMS: dict[str, tuple[str, dict[str, Callable[[], Any]]]] = {
    "tensorflow.python.distribute.estimator_training": ("2.16", _NO_COORDINATOR),
    "tensorflow.python.tpu.session_support": ("2.16", {}),
    "tensorflow.python.tpu.tpu_embedding": ("2.16", {}),
    "tensorflow.python.tpu.tpu_embedding_gradient": ("2.16", {}),
    # The tables of exported names that were Estimator's.
    "tensorflow.python.util.tf_export": (
        "2.16",
        {"ESTIMATOR_API_NAME": _giving("estimator"), "api_export": _giving(_Exported)},
    ),
}
# What says at each use that Estimator is deprecated: who uses it has found that out.
_QUIET = {
    # A module that is one of these is not wrapped.
    "tensorflow.python.util.module_wrapper": {"TFModuleWrapper": _giving(types.ModuleType)},
    # "Use tf.keras instead", for whole classes.
    "tensorflow.python.util.deprecation": {"deprecated": _giving(_same)},
}


@functools.cache
def _tensorflow() -> types.ModuleType:
    """`tensorflow`, whose Keras is tf-keras."""
    tf = importlib.import_module("tensorflow")
    keras_1 = functools.partial(importlib.import_module, _KERAS_1)
    keras_2 = functools.partial(importlib.import_module, _KERAS_2)
    layers = functools.partial(importlib.import_module, f"{_KERAS_1}.__internal__.legacy.layers")

    def v1() -> Any:
        return _View(tf.compat.v1, "tensorflow.compat.v1", {"keras": keras_1, "layers": layers})

    def v2() -> Any:
        return _View(tf.compat.v2, "tensorflow.compat.v2", {"keras": keras_2})

    def compat() -> Any:
        return _View(tf.compat, "tensorflow.compat", {"v1": v1, "v2": v2})

    return _View(tf, "tensorflow", {"keras": keras_2, "compat": compat})


@functools.cache
def _shim(name: str) -> types.ModuleType | None:
    """A module that has names of `_SHIMS`, or modules below it that have; None for all others."""
    release, others = _SHIMS.get(name, ("", {}))
    others = {**others, **_QUIET.get(name, {})}
    for below in (*_SHIMS, *_QUIET):
        parent, _, last = below.rpartition(".")
        if parent == name:
            others[last] = functools.partial(_shim, below)
    if not others and name not in _SHIMS:
        return None
    module = None
    if importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
    return _View(module, name, others, release)


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002 - the arguments of `__import__`
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    """What `import` is to the modules of the package."""
    if level == 0 and name == "tensorflow" and not fromlist:
        return _tensorflow()
    if level == 0 and fromlist and name.startswith("tensorflow."):
        shim = _shim(name)
        if shim is not None:
            for each in fromlist:  # modules below it, as `import` does
                if not hasattr(shim, each):
                    importlib.import_module(f"{name}.{each}")
            return shim
    return builtins.__import__(name, globals, locals, fromlist or (), level)


def _run(loader: Any, module: types.ModuleType) -> None:
    """Runs a module as its own loader does, with an `import` of its own."""
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
    loader.exec_module(module)


def _is_of_package(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE
