"""What `import` gives to the modules of an old program, and to them alone."""

import builtins
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tokenize
import types
from collections.abc import Mapping, Sequence
from typing import Any

from model_deploy.importing import LoaderBy
from model_deploy.tf1 import dropped, names
from model_deploy.tf1.old_module import GoneError
from model_deploy.tf1.old_source import BUILTINS, compiled

# Packages that lay beside the programs of TF-Slim, and Horovod -> ours, for programs without their
# own.
SUPPLIED = {
    "datasets": "model_deploy.tf1.datasets",
    "deployment": "model_deploy.tf1.deployment",
    "horovod": "model_deploy.horovod",
    "nets": "nets",
    "preprocessing": "model_deploy.tf1.preprocessing",
}


# Modules of Horovod that no program of TensorFlow has -> what their programs use.
REFUSED = {
    "horovod.torch": "torch.distributed",
    "horovod.mxnet": "an older release of Horovod and of MXNet, which has ended",
}


class OldProgram:
    """The modules of an old program: those in its folders, packages and all.

    In a `with` block they are imported as programs of TensorFlow 1: each has an `import` of its
    own, in its `__builtins__`, for which `tensorflow` is TensorFlow 1's, and `datasets` and the
    like are ours where the folders have none.  Other modules see what they always see.

    Args:
      folders: the program's; they also come first in `sys.path`.

    Attributes:
      supplied: what the program got from here, names of modules in the order of their imports.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = [os.path.realpath(folder) for folder in folders]
        self.supplied: list[str] = []
        self._finder = _Finder(self)
        self._builtins = {**vars(builtins), **BUILTINS, "__import__": self._import}

    def __enter__(self) -> "OldProgram":
        sys.meta_path.insert(0, self._finder)
        sys.path[:0] = [folder for folder in self.folders if folder not in sys.path]
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self._finder)

    def holds(self, path: str | None) -> bool:
        """Whether a file is the program's; what is installed below its folders is not."""
        if not path:
            return False
        path = os.path.realpath(path)
        if "site-packages" in path.split(os.sep) or _is_below(path, _OURS):
            return False
        return _is_below(path, self.folders)

    def prepare(self, module: types.ModuleType) -> None:
        """Lets a module that was not run yet import as a program of TensorFlow 1."""
        module.__dict__["__builtins__"] = self._builtins

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the arguments of `__import__`
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        if level == 0:
            if top == "tensorflow" or (top == "keras" and not self._has(top)):
                module = names.find(name)
                names.link(name)
                return self._given(name, module, names.find(top), fromlist or ())
            if top == "tensorflow_estimator":
                importlib.import_module("model_deploy.estimator").load()
            if top in dropped.MODULES and not self._has(top):
                module = dropped.old_module(name)
                return module if fromlist else dropped.old_module(top)
            if top in SUPPLIED and not self._has(top):
                return self._supply(name, fromlist or ())
        return builtins.__import__(name, globals, locals, fromlist, level)

    def _supply(self, name: str, fromlist: Sequence[str]) -> Any:
        """What `import` returns of a package that lay beside the programs of TF-Slim, or below it.

        Raises:
          ImportError: if the package has no such module, or it is for another framework.
        """
        top = name.partition(".")[0]
        for refused, other in REFUSED.items():
            if refused == name or (name == top and refused.partition(".")[2] in fromlist):
                raise ImportError(f"{refused} is not for TensorFlow: use {other}", name=refused)
        ours = SUPPLIED[top] + name.removeprefix(top)
        if not _exists(ours):
            raise ModuleNotFoundError(
                f"No module named {name!r}; {top!r} is the package that model_deploy supplies",
                name=name,
            )
        module = importlib.import_module(ours)
        for each in fromlist:
            if not hasattr(module, each) and _exists(f"{ours}.{each}"):
                importlib.import_module(f"{ours}.{each}")
        return self._given(name, module, sys.modules[SUPPLIED[top]], fromlist)

    def _given(self, name: str, module: Any, top: Any, fromlist: Sequence[str]) -> Any:
        """What `import` returns of a module of ours, as `__import__` does."""
        for each in fromlist:
            if each != "*":
                try:
                    getattr(module, each)
                except GoneError as error:  # else Python would only say that it cannot import it
                    raise ImportError(str(error)) from None
                except AttributeError:
                    raise ImportError(
                        f"cannot import name {each!r} from {name!r}, which model_deploy supplies",
                        name=name,
                    ) from None
        for full in [f"{name}.{each}" for each in fromlist] or [name]:
            if full != "tensorflow" and full not in self.supplied:
                self.supplied.append(full)
        return module if fromlist else top

    def _has(self, package: str) -> bool:
        """Whether one of the program's folders has a package or module of this name."""
        found = importlib.machinery.PathFinder.find_spec(package, self.folders)
        if found is None:
            return False
        if found.origin is None:  # a folder without `__init__.py`: of modules, or of data
            return any(_has_modules(folder) for folder in found.submodule_search_locations or ())
        # In a working copy of this project a program may lie beside our packages.
        return not _is_below(found.origin, _OURS)


_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
_OURS = [os.path.join(_ROOT, package) for package in ("model_deploy", "nets")]


def _is_below(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)


def _exists(module: str) -> bool:
    """Whether there is a module of this name, and of those above it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent is no package
        return False


def _has_modules(folder: str) -> bool:
    return any(name.endswith(".py") for _, _, files in os.walk(folder) for name in files)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the program's modules as the other finders do, with a loader that prepares them."""

    def __init__(self, program: OldProgram) -> None:
        self._program = program

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and self._program.holds(spec.origin):
                    spec.loader = LoaderBy(spec.loader, functools.partial(_run, self._program))
                return spec
        return None


def _run(program: OldProgram, loader: Any, module: types.ModuleType) -> None:
    """Prepares a module and runs it as its own loader does."""
    program.prepare(module)
    path = module.__spec__.origin if module.__spec__ else None
    if path is None or not path.endswith(".py"):
        loader.exec_module(module)
        return
    with tokenize.open(path) as file:
        code = compiled(file.read(), path)
    exec(code, module.__dict__)
