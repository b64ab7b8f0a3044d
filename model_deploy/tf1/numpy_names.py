"""NumPy with the names of Python's types that it had until 1.24, and others that are gone."""

import functools
import types
from typing import Any

from model_deploy.tf1.old_module import OldModule

_TYPES = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "object": object,
    "str": str,
}
# Gone since NumPy 2 -> what they were.
_RENAMED = {
    "Inf": "inf",
    "NaN": "nan",
    "alltrue": "all",
    "asscalar": None,
    "cumproduct": "cumprod",
    "float_": "float64",
    "in1d": "isin",
    "product": "prod",
    "sometrue": "any",
    "string_": "bytes_",
    "unicode_": "str_",
}


@functools.cache
def old_numpy(numpy: types.ModuleType) -> types.ModuleType:
    """NumPy as programs of its time use it, with `np.float` and the like."""

    def renamed(name: str) -> Any:
        new = _RENAMED[name]
        return (lambda value: value.item()) if new is None else getattr(numpy, new)

    extras = {name: functools.partial(lambda kind: kind, kind) for name, kind in _TYPES.items()}
    extras |= {
        name: functools.partial(renamed, name) for name in _RENAMED if not hasattr(numpy, name)
    }
    return OldModule("numpy", [numpy], extras)
