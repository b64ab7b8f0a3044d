"""Replaces attributes of other libraries, and context variables, in `with` blocks."""

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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
    """

    def __init__(self, replace_all: Callable[[Replace], None]) -> None:
        self._replace_all = replace_all
        self._blocks = 0
        self._lock = threading.RLock()
        # (object, name, original value) of each replaced attribute.
        self._originals: list[tuple[Any, str, Any]] = []

    @contextlib.contextmanager
    def in_place(self, variable: contextvars.ContextVar[_Value], value: _Value) -> Iterator[None]:
        """Opens a `with` block with the replacements and the variable that they read."""
        self._count(1)
        try:
            with temporarily(variable, value):
                yield
        finally:
            self._count(-1)

    def add(self, replace_more: Callable[[Replace], None]) -> None:
        """Makes further replacements, in a module imported while blocks are open.

        Args:
          replace_more: called if a block is open; makes the replacements.
        """
        with self._lock:
            if self._blocks:
                replace_more(self._replace)

    def _count(self, change: int) -> None:
        """Counts open blocks; replaces at the first and restores after the last."""
        with self._lock:
            before, self._blocks = self._blocks, self._blocks + change
            if before == 0:
                self._replace_all(self._replace)
            elif self._blocks == 0:
                while self._originals:
                    owner, name, value = self._originals.pop()
                    setattr(owner, name, value)

    def _replace(self, owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        self._originals.append((owner, name, original))
        setattr(owner, name, replacement(original))
