"""Attributes of other libraries, and context variables, that are others in `with` blocks."""

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

_Value = TypeVar("_Value")

# Takes the object, the name of its attribute, and what makes the new value of the old one.
Replace = Callable[[Any, str, Callable[[Any], Any]], None]


@contextlib.contextmanager
def temporarily(variable: contextvars.ContextVar[_Value], value: _Value) -> Iterator[None]:
    """A `with` block in which a context variable has a value, in this thread alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class Replacements:
    """Replaces attributes for the `with` blocks of all threads; without one they are as they were.

    Args:
      replace_all: is called when the first block is entered, and replaces them.
    """

    def __init__(self, replace_all: Callable[[Replace], None]) -> None:
        self._replace_all = replace_all
        self._blocks = 0
        self._lock = threading.RLock()
        # What was there before the first block: the object, the name, the value.
        self._originals: list[tuple[Any, str, Any]] = []

    @contextlib.contextmanager
    def in_place(self, variable: contextvars.ContextVar[_Value], value: _Value) -> Iterator[None]:
        """A `with` block with the replacements, which ask a context variable for its value."""
        self._count(1)
        try:
            with temporarily(variable, value):
                yield
        finally:
            self._count(-1)

    def add(self, replace_more: Callable[[Replace], None]) -> None:
        """Replaces more in the blocks that are open, of what was not there when they were entered.

        Args:
          replace_more: is called if there is such a block.
        """
        with self._lock:
            if self._blocks:
                replace_more(self._replace)

    def _count(self, change: int) -> None:
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
