"""TF-Slim 1.1.0, made to work on current TensorFlow.

`from model_deploy import slim` is tf-slim from PyPI.  TensorFlow has moved internal names that
tf-slim imports: `framework.ops.Tensor` went to `framework.tensor`, `control_flow_ops.cond` to
`cond`, and so on.  So each tf-slim module gets a *view* of every TensorFlow module that it imports:
the real module, plus the names that moved away.  TensorFlow itself is not changed.

An import hook, for `tf_slim` and `tf_slim.*` only, puts the views in place.  It is installed when
`model_deploy` is imported, so that `import tf_slim` works from then on; tf-slim modules imported
earlier get their views at once.  tf-slim, and with it TensorFlow, is imported when one of its names
is first used.  Under `slim.arg_scope` layers are built in less time than by tf-slim alone, see
`internals.building_layers_faster`.

>>> from model_deploy import slim
>>> slim.batch_norm.__module__
'tf_slim.layers.layers'
"""

import contextlib
import functools
import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from model_deploy import internals
from model_deploy.importing import FinderBy, lazy_imports, with_moved_names

# The tf-slim module that imports scikit-learn, for one of its losses.
_USES_SKLEARN = "tf_slim.losses.metric_learning"
# The one that has `arg_scope`.
_HAS_ARG_SCOPE = "tf_slim.ops.arg_scope"


class _Six(types.ModuleType):
    """`six` whose `integer_types` include NumPy's integers, which were `int`s in Python 2."""

    def __init__(self, module: types.ModuleType) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_six"] = module

    @property
    def integer_types(self) -> tuple[type, ...]:
        import numpy as np  # noqa: PLC0415 - `model_deploy.launch` and help texts need none

        return (int, np.integer)

    def __getattr__(self, name: str) -> object:
        return getattr(self.__dict__["_six"], name)


def _give_views(module: types.ModuleType) -> None:
    """Replaces the TensorFlow modules, and `six`, in the globals of `module` by their views."""
    for name, value in list(vars(module).items()):
        if type(value) is types.ModuleType:
            view = _Six(value) if value.__name__ == "six" else with_moved_names(value)
            setattr(module, name, view)


def _is_slim(name: str) -> bool:
    return name.partition(".")[0] == "tf_slim"


def _run_with_views(loader: Any, module: Any) -> None:
    """Runs a module by its own loader, then gives it views."""
    if module.__name__ == _USES_SKLEARN:
        _run_before_sklearn(loader, module)
    else:
        loader.exec_module(module)
    _give_views(module)
    if module.__name__ == _HAS_ARG_SCOPE:
        module.arg_scope = _building_faster(module.arg_scope)


def _building_faster(arg_scope: Callable[..., Any]) -> Callable[..., Any]:
    """Returns an `arg_scope` under which variables are compared in less time."""

    @contextlib.contextmanager
    @functools.wraps(arg_scope)
    def faster(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with internals.building_layers_faster(), arg_scope(*args, **kwargs) as scope:
            yield scope

    return faster


def _run_before_sklearn(loader: Any, module: Any) -> None:
    """Runs a module without scikit-learn, which its loss then imports when built."""
    with lazy_imports.refusing("sklearn"):
        loader.exec_module(module)
    if not module.HAS_SKLEARN and importlib.util.find_spec("sklearn") is not None:
        module.metrics = lazy_imports.Later("sklearn.metrics")
        module.HAS_SKLEARN = True


def _install() -> None:
    """Installs the import hook once, and gives views to tf-slim modules imported before."""
    # tf-slim calls deprecated functions in most layers; its users cannot change that.
    deprecated = r"`(layer\.apply|tf\.layers\.\w+)` is deprecated"
    warnings.filterwarnings("ignore", deprecated, UserWarning)
    FinderBy(_is_slim, _run_with_views).install()
    for name, module in list(sys.modules.items()):
        if _is_slim(name):
            _give_views(module)


_install()


# tf-slim is imported on first use: importing it imports TensorFlow, which takes seconds.
def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("tf_slim"), name)


def __dir__() -> list[str]:
    return dir(importlib.import_module("tf_slim"))
