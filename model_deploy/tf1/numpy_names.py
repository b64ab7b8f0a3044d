"""NumPy with the names of Python's types that it had until 1.24, and others that are gone."""

import functools
import types
from typing import Any

from model_deploy.tf1.old_module import OldModule

_TYPES: dict[str, Any] = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "object": object,
    "str": str,
}
# Gone since NumPy 2, some later, and some that warned before -> what they were.
_RENAMED = {
    "Inf": "inf",
    "NaN": "nan",
    "alltrue": "all",
    "cumproduct": "cumprod",
    "float_": "float64",
    "product": "prod",
    "sometrue": "any",
    "string_": "bytes_",
    "unicode_": "str_",
}


@functools.cache
def old_numpy(numpy: types.ModuleType) -> types.ModuleType:
    """NumPy as programs of its time use it, with `np.float` and the like."""

    def in1d(elements: Any, *args: Any, **kwargs: Any) -> Any:
        return numpy.isin(numpy.ravel(elements), *args, **kwargs)

    def asscalar(array: Any) -> Any:
        return array.item()

    values = _TYPES | {name: getattr(numpy, renamed) for name, renamed in _RENAMED.items()}
    values |= {"asscalar": asscalar, "in1d": in1d}
    extras = {name: functools.partial(lambda value: value, each) for name, each in values.items()}
    return OldModule("numpy", [numpy], extras)
