"""Packages that TensorFlow and tf-slim import without using them come when they are first used.

At the end of its own import TensorFlow imports Keras, for what Keras registers of itself; Keras 3
registers nothing.  tf-slim imports scikit-learn, for a single loss.  Both are a good part of the
seconds until the first step: Keras imports scikit-learn and Matplotlib, too, where they are
installed.  TensorFlow's names of Keras, such as `tf.keras`, import it when they are used, so that
programs see no difference.  SciPy and h5py are for what TensorFlow itself still has of an old
Keras, which does without; no public name leads there.

Python looks for garbage whenever there are many new objects, again and again among the 400,000 of
TensorFlow's modules, a fifth of the time of their import, and none of them is garbage.  So it does
not while they are imported, and leaves them alone from then on.

Importing `model_deploy` installs an import hook that acts while TensorFlow is imported.  It does
nothing where TensorFlow is there already, where Keras is, and where the variable
`TF_USE_LEGACY_KERAS` asks for tf-keras.
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

# What TensorFlow tries to import at its own import and does without.
_NOT_USED = ("keras", "scipy", "h5py")


@contextlib.contextmanager
def refusing(*packages: str) -> Iterator[None]:
    """Importing these packages in a `with` block is an ImportError, in this thread alone.

    A package that has been imported is there all the same, and `importlib.util.find_spec` finds it.
    """
    finder = _RefusingFinder(packages)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@contextlib.contextmanager
def keeping_all() -> Iterator[None]:
    """What is made in a `with` block, and is there already, is taken for no garbage, ever.

    Objects to which nothing refers any more are freed as always; only cycles are not looked for.
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
    """A module that is imported when one of its names is first asked for."""

    def __getattr__(self, name: str) -> object:
        return getattr(importlib.import_module(self.__name__), name)


class _Refusing(importlib.abc.Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        raise ImportError("imported when it is first used", name=spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Is never reached; without it Python takes this for a loader of another kind."""


class _RefusingFinder(importlib.abc.MetaPathFinder):
    """Finds packages where Python does, and refuses them to the thread that made this."""

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
            spec.loader = _Refusing()
        return spec


class _FasterLoader(importlib.abc.Loader):
    """Imports TensorFlow as its own loader does, but for what it does without."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        # Who looks at the module's loader finds TensorFlow's own.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with refusing(*_NOT_USED), keeping_all():
            self._loader.exec_module(module)


class _TensorFlowFinder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow where Python does, for `_FasterLoader`."""

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
    """Whether Keras is being imported, or is the one that registers itself.

    TensorFlow reads the variable in the same way.
    """
    return "keras" in sys.modules or os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")


def _install() -> None:
    """Puts the hook in place, once."""
    if not any(isinstance(finder, _TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TensorFlowFinder())


_install()
