"""The names that NumPy has dropped since 1.13, and what they were."""

import functools
import types
from collections.abc import Callable
from typing import Any

# Gone since NumPy 1.24: Python's own types.
_TYPES: dict[str, Any] = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "long": int,
    "object": object,
    "str": str,
    "unicode": str,
}
# Gone since NumPy 1.18, 2 or later -> what has another name today.
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "NaN": "nan",
    "PINF": "inf",
    "alltrue": "all",
    "bool8": "bool_",
    "cfloat": "complex128",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "infty": "inf",
    "int0": "intp",
    "mat": "asmatrix",
    "product": "prod",
    "rank": "ndim",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "string_": "bytes_",
    "uint0": "uintp",
    "unicode_": "str_",
}


def extras(numpy: types.ModuleType) -> dict[str, Callable[[], Any]]:
    """Name -> what makes its value, for the names that are gone."""

    def in1d(elements: Any, *args: Any, **kwargs: Any) -> Any:
        return numpy.isin(numpy.ravel(elements), *args, **kwargs)

    def asscalar(array: Any) -> Any:
        return array.item()

    def asfarray(array: Any, dtype: Any = numpy.float64) -> Any:
        return numpy.asarray(array, dtype if numpy.issubdtype(dtype, numpy.inexact) else float)

    def msort(array: Any) -> Any:
        return numpy.sort(array, axis=0)

    def trapz(y: Any, *args: Any, **kwargs: Any) -> Any:
        return (getattr(numpy, "trapezoid", None) or numpy.trapz)(y, *args, **kwargs)

    def fromstring(string: Any, dtype: Any = float, count: int = -1, sep: str = "") -> Any:
        if sep:
            return numpy.fromstring(string, dtype, count, sep)
        data = string.encode() if isinstance(string, str) else string
        return numpy.frombuffer(data, dtype, count).copy()  # which may be written to, as before

    def array(values: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            return numpy.array(values, dtype, *args, **kwargs)
        except ValueError as error:
            if "inhomogeneous" not in str(error) or dtype is not None or args or kwargs:
                raise
        rows = numpy.empty(len(values), object)  # of any lengths, as before NumPy 1.24
        rows[:] = values
        return rows

    def savez(file: Any, *args: Any, **kwargs: Any) -> None:
        given = {name: array(value) for name, value in kwargs.items()}
        numpy.savez(file, *map(array, args), **given)

    functions = (array, asfarray, asscalar, fromstring, in1d, msort, savez, trapz)
    values = _TYPES | {name: getattr(numpy, renamed) for name, renamed in _RENAMED.items()}
    values |= {function.__name__: function for function in functions}
    values |= {"NINF": -numpy.inf, "NZERO": -0.0, "PZERO": 0.0}
    return {name: functools.partial(lambda value: value, each) for name, each in values.items()}
