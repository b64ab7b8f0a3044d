"""Delays imports of packages that TensorFlow and tf-slim import without using them.

At the end of its own import TensorFlow imports Keras, so that Keras can register itself; Keras 3
registers nothing.  tf-slim imports scikit-learn, for a single loss.  Both take a good part of the
seconds before the first step: Keras imports scikit-learn and Matplotlib where they are installed.
Names such as `tf.keras` import Keras when used, so programs see no difference.  TensorFlow imports
SciPy and h5py for remains of an old Keras, which work without them and have no public name.

Python's garbage collector takes a fifth of TensorFlow's import time to look again and again through
its 400,000 objects, none of which is garbage.  So it is off during the import, and ignores these
objects from then on.

Importing `model_deploy` installs the import hook.  It does nothing if TensorFlow or Keras is
imported already, or the environment variable `TF_USE_LEGACY_KERAS` asks for tf-keras.  It is made
of `FinderBy` and `LoaderBy`, as the other import hooks of this project are.
"""

import contextlib
import dataclasses
import gc
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

Run: TypeAlias = Callable[[Any, types.ModuleType], None]

# Packages that TensorFlow tries to import, and works without.
_NOT_USED = ("keras", "scipy", "h5py")


@contextlib.contextmanager
def refusing(*packages: str) -> Iterator[None]:
    """Makes importing these packages fail with ImportError in a `with` block, in this thread.

    Packages imported before stay usable, and `importlib.util.find_spec` finds the refused ones.
    """
    with finding_by(_RefusingFinder(packages)):
        yield


@contextlib.contextmanager
def keeping_all() -> Iterator[None]:
    """Exempts all present objects, and those made in a `with` block, from garbage collection.

    Reference counting still frees them; only reference cycles among them are never found.
    """
    looks_for_garbage = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if looks_for_garbage:
            gc.enable()


class Later(types.ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


class _RefusingLoader(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        raise ImportError("imported when it is first used", name=spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Is never called, but Python requires it beside `create_module`."""


class _RefusingFinder(importlib.abc.MetaPathFinder):
    """Finds packages as Python does, and makes their import fail in one thread."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._packages or threading.get_ident() != self._thread:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _RefusingLoader()
        return spec


class LoaderBy(importlib.abc.Loader):
    """Loads a module by a function, and is the module's own loader in everything else.

    Args:
      loader: the module's own loader.
      run: runs the module; takes `loader` and the module.
    """

    def __init__(self, loader: Any, run: Run) -> None:
        self._loader, self._run = loader, run

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        module: types.ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        self._run(self._loader, module)

    def __getattr__(self, name: str) -> Any:  # get_source, get_data, ...
        return getattr(self._loader, name)


@dataclasses.dataclass(frozen=True)
class FinderBy(importlib.abc.MetaPathFinder):
    """Finds modules as Python does, and loads them by a function.

    Attributes:
      wants: whether a module is loaded so; takes its full name.
      run: see `LoaderBy`.
    """

    wants: Callable[[str], bool]
    run: Run

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not self.wants(fullname):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LoaderBy(spec.loader, self.run)
        return spec

    def install(self) -> None:
        """Puts the finder before all others, once."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)


@contextlib.contextmanager
def finding_by(finder: importlib.abc.MetaPathFinder) -> Iterator[None]:
    """Puts a finder before all others in a `with` block."""
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _load_faster(loader: importlib.abc.Loader, module: types.ModuleType) -> None:
    """Loads TensorFlow by its own loader, without unused packages and garbage collection."""
    # The module keeps TensorFlow's own loader as its `__loader__`.
    module.__loader__ = loader
    if module.__spec__ is not None:
        module.__spec__.loader = loader
    with refusing(*_NOT_USED), keeping_all():
        loader.exec_module(module)


def _is_tensorflow(name: str) -> bool:
    return name == "tensorflow" and not _keras_is_wanted()


def _keras_is_wanted() -> bool:
    """Whether Keras is imported already, or `TF_USE_LEGACY_KERAS` asks for tf-keras.

    TensorFlow parses the variable in the same way.
    """
    return "keras" in sys.modules or os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")


FinderBy(_is_tensorflow, _load_faster).install()
