"""`Column`: what is read from a column of a table."""

import dataclasses
import numbers
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from model_deploy.checks import check_bool, check_choice

DTYPES = ("float32", "int64", "string")


@dataclasses.dataclass(frozen=True)
class Column:
    """What a column of a table becomes in batches.

    Attributes:
      dtype: float32, int64 or string, as a `tf.DType` or its name.
      default: what stands for a missing value: a number, or for strings str or bytes.  None makes a
        missing value an error.
      is_list: whether each row has a list of values, of any length: batches are then
        `tf.RaggedTensor`s [batch, None], else tensors [batch].

    Raises:
      ValueError: for another dtype, a default of another type, and a default of a list.

    >>> Column("int64", default=-1).kind, Column(tf.string, is_list=True).kind
    ('int64', 'list of string')
    """

    dtype: Any
    default: float | str | bytes | None = None
    is_list: bool = False

    def __post_init__(self) -> None:
        try:
            name = tf.as_dtype(self.dtype).name
        except TypeError:
            name = self.dtype
        check_choice("dtype", name, DTYPES)
        object.__setattr__(self, "dtype", tf.as_dtype(name))
        check_bool("is_list", self.is_list)
        if self.default is None:
            return
        if self.is_list:
            raise ValueError(
                f"default must be None for a list, which may be empty, got {self.default!r}"
            )
        if not self._is_value(self.default):
            raise ValueError(f"default must be of dtype {name}, got {self.default!r}")

    @property
    def kind(self) -> str:
        """The dtype's name, with "list of" before that of a list."""
        name: str = self.dtype.name
        return f"list of {name}" if self.is_list else name

    def _is_value(self, value: Any) -> bool:
        if self.dtype == tf.string:
            return isinstance(value, str | bytes)
        if isinstance(value, bool):
            return False
        if self.dtype == tf.int64:
            return isinstance(value, numbers.Integral) and -(2**63) <= int(value) < 2**63
        return isinstance(value, numbers.Real)


Columns = Mapping[str, Any]


def checked_columns(columns: Columns) -> dict[str, Column]:
    """Returns columns by name, a `Column` for each dtype.

    Args:
      columns: for each name a `Column`, or a dtype for one without default.

    Raises:
      ValueError: for no columns, and what is no column, by name.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise ValueError(f"columns must map names to dtypes, at least one, got {columns!r}")
    found = {}
    for name, column in columns.items():
        try:
            found[name] = column if isinstance(column, Column) else Column(column)
        except ValueError as error:
            raise ValueError(f"column {name!r}: {error}") from error
    return found


def checked_paths(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the paths of a table's files.

    Raises:
      ValueError: for no paths, or one path in place of a list.
    """
    if isinstance(paths, str | bytes | os.PathLike) or not paths:
        raise ValueError(f"paths must be a list of files, at least one, got {paths!r}")
    return [os.fspath(path) for path in paths]
