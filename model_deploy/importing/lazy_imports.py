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
imported already, or the environment variable `TF_USE_LEGACY_KERAS` asks for tf-keras.
"""

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import types
from collections.abc import Iterator, Sequence

# Packages that TensorFlow tries to import, and works without.
_NOT_USED = ("keras", "scipy", "h5py")


@contextlib.contextmanager
def refusing(*packages: str) -> Iterator[None]:
    """Makes importing these packages fail with ImportError in a `with` block, in this thread.

    Packages imported before stay usable, and `importlib.util.find_spec` finds the refused ones.
    """
    finder = _RefusingFinder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


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


class _FasterLoader(importlib.abc.Loader):
    """Loads TensorFlow by its own loader, without unused packages and garbage collection."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        # The module keeps TensorFlow's own loader as its `__loader__`.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with refusing(*_NOT_USED), keeping_all():
            self._loader.exec_module(module)


class _TensorFlowFinder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as Python does, and loads it by `_FasterLoader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "tensorflow" or _keras_is_wanted():
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _FasterLoader(spec.loader)
        return spec


def _keras_is_wanted() -> bool:
    """Whether Keras is imported already, or `TF_USE_LEGACY_KERAS` asks for tf-keras.

    TensorFlow parses the variable in the same way.
    """
    return "keras" in sys.modules or os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")


def _install() -> None:
    """Installs the import hook, once."""
    if not any(isinstance(finder, _TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TensorFlowFinder())


_install()
