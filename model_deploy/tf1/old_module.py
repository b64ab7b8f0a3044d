"""`OldModule`: a module as TensorFlow 1 had it, made of modules of today."""

import importlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from model_deploy.tf1.gone import advice

_VERSIONS = ("__version__", "__git_version__", "__compiler_version__")


class GoneError(AttributeError):
    """A name that TensorFlow 1 had and that is nowhere today; the message says what to use."""


class OldModule(types.ModuleType):
    """A module whose names come from others, looked up when they are asked for.

    Args:
      name: the name that TensorFlow 1 gave it, such as `tensorflow.contrib.layers`.
      providers: names of modules, or the modules themselves, that are asked in order.
      extras: names that no provider has, or has with another meaning -> what makes the value.
    """

    def __init__(
        self,
        name: str,
        providers: Sequence[str | types.ModuleType] = (),
        extras: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        super().__init__(name, f"`{name}` as programs of TensorFlow 1 know it.")
        self.__dict__["_providers"] = providers
        self.__dict__["_extras"] = dict(extras or {})

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [each for each in dir(self) if not each.startswith("_")]
        if name.startswith("__") and name not in _VERSIONS:  # `__path__`: it is no package
            raise AttributeError(name)
        value = self._find(name)
        self.__dict__[name] = value
        return value

    def _find(self, name: str) -> Any:
        if name in self.__dict__["_extras"]:
            return self.__dict__["_extras"][name]()
        for provider in self._loaded():
            try:
                return getattr(provider, name)
            except AttributeError:  # TensorFlow's, also for what Keras 3 does not have
                continue
        raise GoneError(advice(f"{self.__name__}.{name}"))

    def _loaded(self) -> Iterator[types.ModuleType]:
        for provider in self.__dict__["_providers"]:
            yield importlib.import_module(provider) if isinstance(provider, str) else provider

    def __dir__(self) -> list[str]:
        names = {*self.__dict__["_extras"], *self.__dict__}
        for provider in self._loaded():
            names.update(dir(provider))
        return sorted(names)
