"""Modules of Python, NumPy and SciPy with the names that they have dropped since 2017.

They are given to the modules of an old program alone; the modules themselves stay as they are.
"""

import base64
import collections
import collections.abc
import functools
import importlib
import inspect
import math
import time
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from model_deploy.tf1 import numpy_names
from model_deploy.tf1.old_module import OldModule


class ArgSpec(NamedTuple):
    """What `inspect.getargspec` returned."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """`inspect.getargspec`, which is gone since Python 3.11.

    Raises:
      ValueError: for a function with keyword-only arguments or annotations, as ever.
    """
    found = inspect.getfullargspec(function)
    if found.kwonlyargs or found.annotations:
        raise ValueError(
            f"function must have neither keyword-only arguments nor annotations, got {function!r}"
        )
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


# Module -> its names that are gone -> what they were.
_NAMES: dict[str, Mapping[str, Any]] = {
    "base64": {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes},
    "collections": {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "fractions": {"gcd": math.gcd},
    "inspect": {"ArgSpec": ArgSpec, "getargspec": getargspec},
    "time": {"clock": time.process_time},
}
MODULES = frozenset([*_NAMES, "numpy", "scipy"])


@functools.cache
def old_module(name: str) -> types.ModuleType:
    """A module of `MODULES`, or of a package among them, with the names that it had.

    Raises:
      ImportError: if it is not installed.
    """
    if name == "scipy.misc":
        return importlib.import_module("model_deploy.tf1.scipy_misc")
    module = importlib.import_module(name)
    if name == "scipy":
        return _Module(module, {"misc": functools.partial(old_module, "scipy.misc")})
    if name == "numpy":
        return _Module(module, numpy_names.extras(module))
    if name in _NAMES:
        values = _NAMES[name].items()
        return _Module(module, {each: functools.partial(_given, value) for each, value in values})
    return module


class _Module(OldModule):
    """A module with more names; what it does not have either is its own error."""

    def __init__(self, module: types.ModuleType, extras: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__(module.__name__, [module], extras)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_extras"]:
            return super().__getattr__(name)
        return getattr(self.__dict__["_module"], name)


def _given(value: Any) -> Any:
    return value


# Methods that are gone -> what they did, for objects that do not have them.
METHODS: dict[str, Callable[..., Any]] = {
    "getchildren": list,  # of elements of `xml.etree`
    "isAlive": lambda thread: thread.is_alive(),
    "itemset": lambda array, *args: array.__setitem__(args[:-1] or (), args[-1]),
    "newbyteorder": lambda array, *args: array.view(array.dtype.newbyteorder(*args)),
    "ptp": lambda array, *args, **kwargs: importlib.import_module("numpy").ptp(
        array, *args, **kwargs
    ),
    "tostring": lambda array, *args, **kwargs: array.tobytes(*args, **kwargs),
}


def call_method(owner: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """`owner.name(...)`, also for a method of `METHODS` that it has had."""
    if not hasattr(owner, name):
        try:
            return METHODS[name](owner, *args, **kwargs)
        except AttributeError:  # it is of another kind: its own error names what is missing
            pass
    return getattr(owner, name)(*args, **kwargs)
