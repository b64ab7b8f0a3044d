"""The Python side of a `model_fn`: iterators that it advances, and objects that it changes."""

import dataclasses
import functools
import inspect
import io
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk

WAY_OUT = "copy_clones=False calls model_fn for each clone instead"

# Packages whose objects have changing caches, but no state of a model.
_LIBRARIES = frozenset(
    ("tensorflow", "tf_slim", "tf_keras", "keras", "numpy", "absl", "nets", "model_deploy")
)
_KERASES = ("keras", "tf_keras")


@dataclasses.dataclass(frozen=True)
class Taken:
    """One call of `next` that the first clone made on an iterator.

    Attributes:
      iterator: the iterator.
      name_scope: the name scope of the call.
      value: the returned item: tensors of any shapes in any structure.
      ops: the ops that the call added.
    """

    iterator: Iterator[Any]
    name_scope: str
    value: Any
    ops: list[Any]


class Recorder(Iterator[Any]):
    """Wraps an iterator and records each call of `next`.

    Args:
      iterator: the iterator, whose other attributes stay accessible.
      taken: the list to which calls are added.
    """

    def __init__(self, iterator: Iterator[Any], taken: list[Taken]) -> None:
        self._iterator = iterator
        self._taken = taken

    def __next__(self) -> Any:
        """Returns the next item of the iterator, and records it."""
        name_scope = tf.get_default_graph().get_name_scope()
        with graph_walk.new_ops() as ops:
            value = next(self._iterator)
        self._taken.append(Taken(self._iterator, name_scope, value, ops))
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)


def record_iterators(value: Any, taken: list[Taken]) -> Any:
    """Replaces each iterator in lists, tuples and dicts by a `Recorder`."""
    if not _holds_iterator(value):
        return value
    if isinstance(value, Mapping):
        return {key: record_iterators(item, taken) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [record_iterators(item, taken) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return Recorder(value, taken)


class PythonState:
    """Detects changes that a `model_fn` makes to Python objects that it can reach.

    Args:
      model_fn: a function, a method or an object with `__call__`.
      args: the arguments of `model_fn`, by name.
    """

    def __init__(self, model_fn: Callable[..., Any], args: Mapping[str, Any]) -> None:
        self._model_fn = model_fn
        self._args = args
        self._before = self._contents()

    def check_no_hidden_iterators(self) -> None:
        """Checks that `model_fn` reaches no iterator that is not an argument.

        Raises:
          ValueError: naming an iterator that is not an argument.
        """
        for name, value in self._objects().items():
            if name not in self._args and _is_iterator(value):
                raise ValueError(
                    f"a copied model_fn must get iterators as arguments, got {name!r} from "
                    f"elsewhere, so that all clones would share one batch; {WAY_OUT}"
                )

    def check_unchanged(self) -> None:
        """Checks that `model_fn` has not changed any object that it can reach.

        Raises:
          ValueError: naming the changed object.
        """
        after = self._contents()
        for name in (*self._before, *after):
            old, new = self._before.get(name, []), after.get(name, [])
            if len(old) != len(new) or any(a is not b for a, b in zip(old, new, strict=True)):
                raise ValueError(
                    f"a copied model_fn must leave Python objects alone, got a change of {name!r}, "
                    "which another call could have seen; pass what differs between clones as "
                    f"iterators; {WAY_OUT}"
                )

    def _contents(self) -> dict[str, list[Any]]:
        """Returns the direct content of each object that `model_fn` reaches, by name."""
        return {name: _content(value) for name, value in self._objects().items()}

    def _objects(self) -> dict[str, Any]:
        """Returns by name the objects reached by arguments, closures and attributes."""
        found = dict(self._args)
        waiting, seen = [self._model_fn, *self._args.values()], set()
        while waiting:
            value = waiting.pop()
            if id(value) in seen or not _is_transparent(value):
                continue
            seen.add(id(value))
            function = value if inspect.isroutine(value) else _call_of(value)
            around, far = _variables_of_function(function)
            found |= far | around
            waiting += [*around.values(), *filter(inspect.isfunction, far.values())]
            if not inspect.isroutine(value):
                kind = type(value).__name__
                attributes = getattr(value, "__dict__", {})
                found |= {f"{kind}.{key}": item for key, item in attributes.items()}
                waiting += attributes.values()
        return found


def unwrap_partial(
    model_fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Returns the function inside of a `functools.partial`, with all arguments."""
    args, kwargs = tuple(args), dict(kwargs)
    while isinstance(model_fn, functools.partial):
        args, kwargs = (*model_fn.args, *args), {**model_fn.keywords, **kwargs}
        model_fn = model_fn.func
    return model_fn, args, kwargs


def _holds_iterator(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_iterator(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_iterator(item) for item in value)
    return _is_iterator(value)


def _is_iterator(value: Any) -> bool:
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def _is_transparent(value: Any) -> bool:
    """Whether to look inside an object for state: not in iterators, types and library objects."""
    if isinstance(value, Iterator | type) or inspect.ismodule(value) or inspect.isbuiltin(value):
        return False
    if any(_package(kind.__module__) in _KERASES for kind in type(value).__mro__):
        return False  # Keras layers change at each call
    module = getattr(value, "__module__", None) or type(value).__module__
    package = _package(module)
    return package not in _LIBRARIES and package not in sys.stdlib_module_names - {"__main__"}


def _package(module: Any) -> str:
    return str(module).split(".", maxsplit=1)[0]


def _variables_of_function(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns by name what a function closes over or has as defaults, and the globals it uses."""
    function = inspect.unwrap(getattr(value, "__func__", value))
    around = {f"{function.__name__}.self": value.__self__} if inspect.ismethod(value) else {}
    if not inspect.isfunction(function):
        return around, {}
    used = inspect.getclosurevars(function)
    defaults = dict(enumerate(function.__defaults__ or ())) | (function.__kwdefaults__ or {})
    around |= {f"{function.__name__} default {name}": value for name, value in defaults.items()}
    return around | dict(used.nonlocals), dict(used.globals)


def _call_of(value: Any) -> Any:
    return type(value).__call__ if callable(value) else None


def _content(value: Any) -> list[Any]:
    """Returns a value and its direct items, which are compared by identity."""
    if isinstance(value, Mapping):
        return [value, *value.keys(), *value.values()]
    if isinstance(value, list | tuple | set | deque):
        return [value, *value]
    return [value]
