"""Rows of Parquet files as arrays: decoded from Arrow's tables, and taken by number.

All dense numbers of a dtype are one matrix, so that a row is a few pieces of memory, however many
columns it has.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model_deploy.inputs.tables.columns import Column

_NUMBERS = {"float32": np.float32, "int64": np.int64}


@dataclasses.dataclass(frozen=True)
class Layout:
    """Which columns are where in `Rows`.

    Attributes:
      columns: the columns by name.
    """

    columns: Mapping[str, Column]

    def dense(self, dtype: str) -> list[str]:
        """Returns the names of the columns with one value per row."""
        return [name for name, each in self.columns.items() if each.kind == dtype]

    @property
    def lists(self) -> list[str]:
        """The names of the columns with a list per row."""
        return [name for name, each in self.columns.items() if each.is_list]


@dataclasses.dataclass(frozen=True)
class Rows:
    """Decoded rows.

    Attributes:
      numbers: for "float32" and "int64" a matrix [rows, columns of that dtype].
      strings: Arrow's table of the columns of texts, as bytes.
      lists: by name, values [n], an array or Arrow's array of bytes, and where each row's begin and
        the last one's end, int64 [rows + 1].
      problems: by name, which rows have a missing value that nothing stands for, bool [rows].
    """

    numbers: dict[str, np.ndarray]
    strings: Any
    lists: dict[str, tuple[Any, np.ndarray]]
    problems: dict[str, np.ndarray]

    @property
    def num_bytes(self) -> int:
        """Bytes of memory."""
        arrays = [*self.numbers.values(), self.strings, *self.problems.values()]
        for values, begins in self.lists.values():
            arrays += [values, begins]
        return sum(each.nbytes for each in arrays)

    def problem_of(self, row: int) -> str | None:
        """Returns the name of the first column with a problem in a row; None if there is none."""
        return next((name for name, wrong in self.problems.items() if wrong[row]), None)


def decode(table: Any, layout: Layout) -> Rows:
    """Decodes an Arrow table.

    Args:
      table: a `pyarrow.Table` with the columns of the layout, of types that `kind_of` knows.
      layout: the columns.

    Raises:
      ValueError: naming a column with a number that its dtype cannot hold.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra

    problems: dict[str, np.ndarray] = {}
    arrays = {}
    for name, column in layout.columns.items():
        array = _one_array(table.column(name))
        if array.null_count and column.default is None:
            problems[name] = array.is_null().to_numpy(zero_copy_only=False)
        arrays[name] = array
    numbers = {}
    for dtype, kind in _NUMBERS.items():
        names = layout.dense(dtype)
        numbers[dtype] = np.empty([table.num_rows, len(names)], kind)
        for place, name in enumerate(names):
            default = layout.columns[name].default
            numbers[dtype][:, place] = _numbers(name, arrays[name], dtype, default or 0)
    strings = {
        name: _bytes(arrays[name], layout.columns[name].default or "")
        for name in layout.dense("string")
    }
    lists = {
        name: _lists(name, arrays[name], layout.columns[name], problems) for name in layout.lists
    }
    return Rows(numbers, pa.table(strings), lists, problems)


def take(parts: Sequence[tuple[Rows, np.ndarray]], order: np.ndarray, layout: Layout) -> list[Any]:
    """Returns some rows of several tables as arrays.

    Args:
      parts: tables, and for each the numbers of the wanted rows, int64 [rows of the part].
      order: int64 [n], where in the result the rows of all parts, one behind the other, come.
      layout: the columns.

    Returns:
      float32 [n, dense columns], int64 [n, dense columns], for each dense column of strings an
      array of bytes [n], and for each list its values [any] and the lengths, int64 [n].
    """
    import pyarrow as pa  # noqa: PLC0415

    result: list[Any] = []
    back = np.argsort(order)
    for dtype in _NUMBERS:
        result.append(np.concatenate([rows.numbers[dtype][wanted] for rows, wanted in parts])[back])
    if names := layout.dense("string"):
        # All columns at once: a call of Arrow's for each costs more than what it takes.
        strings = pa.concat_tables([rows.strings.take(pa.array(wanted)) for rows, wanted in parts])
        strings = strings.take(pa.array(back))
        result += [strings.column(name).to_numpy() for name in names]
    for name in layout.lists:
        places = [_places_in_lists(rows.lists[name][1], wanted) for rows, wanted in parts]
        values = np.concatenate(
            [
                _taken(rows.lists[name][0], at)
                for (rows, _), (at, _) in zip(parts, places, strict=True)
            ]
        )
        lengths = np.concatenate([each for _, each in places])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        at, lengths = _places_in_lists(begins, back)
        result += [values[at], lengths]
    return result


def kind_of(arrow_type: Any) -> str | None:
    """Returns the kind of column that an Arrow type becomes, as `Column.kind`; None for no kind."""
    from pyarrow import types  # noqa: PLC0415 - an extra

    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        inner = kind_of(arrow_type.value_type)
        return None if inner is None or inner.startswith("list") else f"list of {inner}"
    if types.is_dictionary(arrow_type):
        return kind_of(arrow_type.value_type)
    if types.is_integer(arrow_type) or types.is_boolean(arrow_type):
        return "int64"
    if types.is_floating(arrow_type):
        return "float32"
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return "string" if any(is_text(arrow_type) for is_text in texts) else None


def _one_array(column: Any) -> Any:
    """Returns Arrow's array of a chunked one, without a dictionary."""
    import pyarrow as pa  # noqa: PLC0415

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    return array


def _numbers(name: str, array: Any, dtype: str, default: Any) -> np.ndarray:
    """Returns numbers of a dtype; the default in place of missing ones."""
    import pyarrow as pa  # noqa: PLC0415

    try:
        # Floats are rounded, as everywhere; an integer that is too large is an error.
        array = array.cast(dtype.replace("float32", "float"), safe=dtype == "int64")
    except pa.ArrowInvalid as error:
        raise ValueError(f"column {name!r} must have values of {dtype}: {error}") from error
    if array.null_count:
        array = array.fill_null(pa.scalar(default, array.type))
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _bytes(array: Any, default: Any) -> Any:
    """Returns texts as Arrow's array of bytes; the default in place of missing ones."""
    import pyarrow as pa  # noqa: PLC0415

    array = array.cast(pa.large_binary())
    if array.null_count:
        value = default.encode() if isinstance(default, str) else default
        array = array.fill_null(pa.scalar(value, array.type))
    return array


def _lists(
    name: str, array: Any, column: Column, problems: dict[str, np.ndarray]
) -> tuple[Any, np.ndarray]:
    """Returns the values of lists, and where each begins; notes missing values among them."""
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    values = array.flatten()  # without what missing lists hide
    if values.null_count:
        missing = np.concatenate([[0], np.cumsum(values.is_null().to_numpy(zero_copy_only=False))])
        problems[name] = problems.get(name, False) | (missing[begins[1:]] > missing[begins[:-1]])
    if column.dtype.name == "string":
        return _bytes(values, ""), begins
    return _numbers(name, values, column.dtype.name, 0), begins


def _places_in_lists(begins: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the places of all values of some rows, and the length of each row; int64 [any]."""
    lengths = begins[rows + 1] - begins[rows]
    shifts = begins[rows] - (np.cumsum(lengths) - lengths)
    return np.arange(lengths.sum()) + np.repeat(shifts, lengths), lengths


def _taken(values: Any, places: np.ndarray) -> np.ndarray:
    """Returns values at some places: of an array, or of Arrow's bytes as Python's."""
    if isinstance(values, np.ndarray):
        return values[places]
    found: np.ndarray = values.take(places).to_numpy(zero_copy_only=False)
    return found
