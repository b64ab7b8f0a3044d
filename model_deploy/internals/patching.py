"""`Patches`: other libraries' functions, replaced while a `with` block needs it."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Patch(NamedTuple):
    """An attribute to be replaced.

    Attributes:
      owner: the class or module that has it.
      name: of the attribute.
      replacement: takes what was there before, returns what is to be there.
    """

    owner: Any
    name: str
    replacement: Callable[[Any], Any]


class Patches:
    """Replaces attributes while at least one thread is in a block; else all is as it was.

    Args:
      find: returns them; called when the first block begins.
    """

    def __init__(self, find: Callable[[], Iterable[Patch]]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._blocks = 0
        self._restoring = contextlib.ExitStack()

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """For a `with` block."""
        with self._lock:
            if not self._blocks:
                for patch in self._find():
                    self._replace(*patch)
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    self._restoring.close()

    def _replace(self, owner: Any, name: str, replacement: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, replacement(original))
        self._restoring.callback(setattr, owner, name, original)
