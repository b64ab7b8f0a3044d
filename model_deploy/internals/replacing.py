"""Replaces attributes of other libraries, and context variables, in `with` blocks."""

import contextlib
import contextvars
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from model_deploy.importing import FinderBy, finding_by

_Value = TypeVar("_Value")

# (object, name of the attribute, function from the old to the new value) -> None.
Replace = Callable[[Any, str, Callable[[Any], Any]], None]


@contextlib.contextmanager
def temporarily(variable: contextvars.ContextVar[_Value], value: _Value) -> Iterator[None]:
    """Sets a context variable in a `with` block, for this thread alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class Replacements:
    """Replaces attributes while any thread is in a `with` block, and restores them afterwards.

    Args:
      replace_all: called when the first block is entered; makes the replacements.
      modules: names of modules that `replace_in` looks after.
      replace_in: called with the name of each of these modules that is imported, or that a block
        imports; makes the replacements in it.
    """

    def __init__(
        self,
        replace_all: Callable[[Replace], None] = lambda replace: None,
        modules: Sequence[str] = (),
        replace_in: Callable[[str, Replace], None] = lambda name, replace: None,
    ) -> None:
        self._replace_all, self._modules, self._replace_in = replace_all, modules, replace_in
        self._blocks = 0
        self._lock = threading.RLock()
        # (object, name, original value) of each replaced attribute.
        self._originals: list[tuple[Any, str, Any]] = []

    @contextlib.contextmanager
    def in_place(self, variable: contextvars.ContextVar[_Value], value: _Value) -> Iterator[None]:
        """Opens a `with` block with the replacements and the variable that they read."""
        self._count(1)
        try:
            with temporarily(variable, value), self._seeing_imports():
                yield
        finally:
            self._count(-1)

    @contextlib.contextmanager
    def _seeing_imports(self) -> Iterator[None]:
        """Makes replacements in modules that are first imported in a `with` block, too."""
        if all(name in sys.modules for name in self._modules):
            yield
            return
        with finding_by(FinderBy(self._modules.__contains__, self._run)):
            yield

    def _run(self, loader: Any, module: types.ModuleType) -> None:
        """Runs a module by its own loader, then makes the replacements in it."""
        loader.exec_module(module)
        with self._lock:
            if self._blocks:
                self._replace_in(module.__name__, self._replace)

    def _count(self, change: int) -> None:
        """Counts open blocks; replaces at the first and restores after the last."""
        with self._lock:
            before, self._blocks = self._blocks, self._blocks + change
            if before == 0:
                self._replace_all(self._replace)
                for name in self._modules:
                    if name in sys.modules:
                        self._replace_in(name, self._replace)
            elif self._blocks == 0:
                while self._originals:
                    owner, name, value = self._originals.pop()
                    setattr(owner, name, value)

    def _replace(self, owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        self._originals.append((owner, name, original))
        setattr(owner, name, replacement(original))
