"""Modules of Python, NumPy, SciPy, Pillow and PyYAML with names that they have dropped since 2017.

They are given to the modules of an old program alone; the modules themselves stay as they are.
"""

import base64
import collections
import collections.abc
import functools
import importlib
import importlib.util
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


def load_yaml(stream: Any, Loader: Any = None) -> Any:  # noqa: N803 - as PyYAML has it
    """`yaml.load`, which needs a loader since PyYAML 6; without one it loads plain data alone."""
    yaml = importlib.import_module("yaml")
    return yaml.load(stream, Loader or yaml.SafeLoader)


# Module -> its names that are gone -> what they were.
_NAMES: dict[str, Mapping[str, Any]] = {
    "base64": {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes},
    "collections": {name: getattr(collections.abc, name) for name in collections.abc.__all__},
    "fractions": {"gcd": math.gcd},
    "inspect": {"ArgSpec": ArgSpec, "getargspec": getargspec},
    "time": {"clock": time.process_time},
    "yaml": {"load": load_yaml},
}
# Pillow's filters since 10 -> what they were other names of.
_FILTERS = {"ANTIALIAS": "LANCZOS", "CUBIC": "BICUBIC", "LINEAR": "BILINEAR"}
MODULES = frozenset([*_NAMES, "PIL", "numpy", "scipy"])


@functools.cache
def old_module(name: str) -> types.ModuleType:
    """A module of `MODULES`, or of a package among them, with the names that it had.

    Raises:
      ImportError: if it is not installed.
    """
    if name == "scipy.misc":
        return importlib.import_module("model_deploy.tf1.scipy_misc")
    module = importlib.import_module(name)
    extras = _extras(module)
    return _Module(module, extras) if extras else module


def _extras(module: types.ModuleType) -> Mapping[str, Callable[[], Any]]:
    """Name -> what makes the value, for what a module had and has no longer."""
    if module.__name__ == "numpy":
        return numpy_names.extras(module)
    if module.__name__ == "scipy":
        return {"misc": functools.partial(old_module, "scipy.misc")}
    if module.__name__ == "PIL":
        return {"Image": functools.partial(old_module, "PIL.Image")}
    if module.__name__ == "PIL.Image":
        return {old: functools.partial(getattr, module, new) for old, new in _FILTERS.items()}
    values = _NAMES.get(module.__name__, {}).items()
    return {each: functools.partial(_given, value) for each, value in values}


class _Module(OldModule):
    """A module with more names; what it does not have either is its own error."""

    def __init__(self, module: types.ModuleType, extras: Mapping[str, Callable[[], Any]]) -> None:
        super().__init__(module.__name__, [module], extras)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__["_extras"]:
            return super().__getattr__(name)
        module = self.__dict__["_module"]
        try:
            return getattr(module, name)
        except AttributeError:
            file = f"{module.__name__}.{name}"
            if not hasattr(module, "__path__") or importlib.util.find_spec(file) is None:
                raise
        return importlib.import_module(file)


def _given(value: Any) -> Any:
    return value


def _size(box: tuple[float, float, float, float]) -> tuple[int, int]:
    """Width and height of a text, from where its line begins, as Pillow has them before 10."""
    return int(box[2]), int(box[3])


# Methods that are gone -> what they did, for objects that do not have them.
METHODS: dict[str, Callable[..., Any]] = {
    "getchildren": list,  # of elements of `xml.etree`
    # Of dicts in Python 2, which programs of both have where nobody came by in Python 3.
    "has_key": lambda dictionary, key: key in dictionary,
    "iteritems": lambda dictionary: iter(dictionary.items()),
    "iterkeys": lambda dictionary: iter(dictionary.keys()),
    "itervalues": lambda dictionary: iter(dictionary.values()),
    "getsize": lambda font, *args, **kwargs: _size(font.getbbox(*args, **kwargs)),
    "isAlive": lambda thread: thread.is_alive(),
    "itemset": lambda array, *args: array.__setitem__(args[:-1] or (), args[-1]),
    "newbyteorder": lambda array, *args: array.view(array.dtype.newbyteorder(*args)),
    "ptp": lambda array, *args, **kwargs: importlib.import_module("numpy").ptp(
        array, *args, **kwargs
    ),
    "textsize": lambda draw, *args, **kwargs: _size(draw.textbbox((0, 0), *args, **kwargs)),
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
