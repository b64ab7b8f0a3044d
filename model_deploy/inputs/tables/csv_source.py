"""`CsvRows`: the rows of CSV files, parsed by `tf.io.decode_csv`."""

import csv
import dataclasses
import functools
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy import file_systems
from model_deploy.checks import check_bool
from model_deploy.inputs.files import indexes
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.reading import decoding
from model_deploy.inputs.tables.columns import Column
from model_deploy.inputs.tables.csv_rows import RowFile, find_rows
from model_deploy.inputs.tables.row_source import RowSource, Stored

tf1 = tf.compat.v1
_FIELD_NUMBER = re.compile(r"Field (\d+) in record \d+")
_MISSING = re.compile(r"Field (\d+) is required but missing in record \d+!?")
_NUMBER = re.compile(r"StringToNumberOp could not correctly convert string: ")
_COUNT = re.compile(r"Expect (\d+) fields but have (\d+) in record \d+")


@dataclasses.dataclass(frozen=True)
class CsvFormat:
    """How rows are written; the fields are arguments of `CsvDataset`.

    Attributes:
      names: the names of all fields, in order; None if the first row of each file has them.
      delimiter: the character between fields.
      list_separator: what stands between the values of a list.
      quoting: whether double quotes may enclose fields.
      na_value: a further text that marks a missing value.

    Raises:
      ValueError: for a delimiter that is no single character, or a list separator with it.
    """

    names: Sequence[str] | None = None
    delimiter: str = ","
    list_separator: str = "|"
    quoting: bool = True
    na_value: str = ""

    def __post_init__(self) -> None:
        check_bool("quoting", self.quoting)
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise ValueError(
                f"delimiter must be one character and no quote, got {self.delimiter!r}"
            )
        if not self.list_separator or self.delimiter in self.list_separator:
            raise ValueError(
                f"list_separator must be a text without the delimiter, got {self.list_separator!r}"
            )


class CsvRows(RowSource):
    """The rows of CSV files.

    Args:
      paths: the files, on any file system.
      columns: the columns that are wanted, by name.
      form: how rows are written.
      tolerance: the count of skipped rows.

    Raises:
      ValueError: as `CsvDataset`.
    """

    stored = (Stored(tf.string, [None]),)

    def __init__(
        self,
        paths: Sequence[str],
        columns: Mapping[str, Column],
        form: CsvFormat,
        tolerance: Tolerance,
    ) -> None:
        self.columns, self.tolerance = dict(columns), tolerance
        self._form = form
        self.is_local = all(map(file_systems.is_local, paths))
        self._files = indexes.find_all(
            paths, lambda path: find_rows(path, form.quoting), lambda file: len(file.begins)
        )
        self._first_row = 1 if form.names is None else 0
        self._names = self._header() if form.names is None else list(form.names)
        self._check_names("names" if form.names is not None else f"the header of {paths[0]!r}")
        rows = [max(0, len(file.begins) - self._first_row) for file in self._files]
        self._ends = np.cumsum(rows)
        self.num_rows = int(self._ends[-1])
        self._lock = threading.Lock()

    def read(self, indices: np.ndarray) -> list[np.ndarray]:
        """Returns the text of rows, bytes [n]; see `RowSource`."""
        order = np.argsort(indices, kind="stable")
        in_order = indices[order]
        rows = np.empty([len(indices)], object)
        of_file = np.searchsorted(self._ends, in_order, side="right")
        for number in np.unique(of_file):
            mine = of_file == number
            file = self._files[number]
            for place, row in zip(
                order[mine], file.read(self._row(number, in_order[mine])), strict=True
            ):
                rows[place] = row
        return [rows]

    def parse(self, stored: Sequence[Any]) -> dict[str, Any]:
        """Returns the columns of rows; see `RowSource`.

        Args:
          stored: the text of the rows, string [n].
        """
        fields = tf.io.decode_csv(
            stored[0],
            [_record_default(self.columns.get(name)) for name in self._names],
            field_delim=self._form.delimiter,
            use_quote_delim=self._form.quoting,
            na_value=self._form.na_value,
        )
        by_name = dict(zip(self._names, fields, strict=True))
        return {
            name: self._list(by_name[name], column) if column.is_list else by_name[name]
            for name, column in self.columns.items()
        }

    def check(self, index: int) -> None:
        """Checks that a row can be read and parsed; see `RowSource`.

        Args:
          index: the number of the row over all files.

        Raises:
          CorruptRecordError: naming file, row, line and reason.
        """
        number = int(np.searchsorted(self._ends, index, side="right"))
        file, row = self._files[number], int(self._row(number, np.int64(index)))
        try:
            [text] = file.read(np.array([row]))
        except OSError as error:
            reason = f"cannot be read: {error}"
            raise CorruptRecordError(file.path, row - self._first_row, reason) from error
        problem = self._problem(text)
        if problem:
            reason = f"line {file.line(row)}: {problem}"
            raise CorruptRecordError(file.path, row - self._first_row, reason)

    def _row(self, number: int, indices: Any) -> Any:
        """Returns the numbers in a file, header included, of rows over all files."""
        before = self._ends[number - 1] if number else 0
        return indices - before + self._first_row

    def _header(self) -> list[str]:
        """Returns the names in the first rows of the files, after checking that they are equal."""
        headers = [self._fields_of_header(file) for file in self._files]
        for file, header in zip(self._files, headers, strict=True):
            if header != headers[0]:
                raise ValueError(
                    f"files must have the header of {self._files[0].path!r}, "
                    f"{', '.join(headers[0])}, got {', '.join(header)} in {file.path!r}"
                )
        return headers[0]

    def _fields_of_header(self, file: RowFile) -> list[str]:
        if not len(file.begins):
            raise ValueError(f"file must have a header without names, got the empty {file.path!r}")
        [text] = file.read(np.array([0]))
        try:
            header = text.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{file.path}: the header must be UTF-8, got {text!r}") from error
        if not self._form.quoting:
            return header.split(self._form.delimiter)
        return next(csv.reader([header], delimiter=self._form.delimiter))

    def _check_names(self, place: str) -> None:
        twice = sorted({name for name in self._names if self._names.count(name) > 1})
        if twice:
            raise ValueError(
                f"names of columns must be different, got {twice[0]!r} twice in {place}"
            )
        for name in self.columns:
            if name not in self._names:
                raise ValueError(
                    f"columns must be among {place}, {', '.join(self._names)}, got {name!r}"
                )

    def _list(self, fields: Any, column: Column) -> Any:
        """Returns the lists in fields, string [n], as a `tf.RaggedTensor` [n, None]."""
        values = tf.strings.split(fields, self._form.list_separator)
        # The text of an empty list would be a list of an empty text.
        is_full = tf.cast(tf.not_equal(fields, ""), tf.int64)
        lengths = values.row_lengths() * is_full
        kept = tf.boolean_mask(values.values, tf.gather(is_full > 0, values.value_rowids()))
        if column.dtype != tf.string:
            kept = tf.strings.to_number(kept, column.dtype)
        return tf.RaggedTensor.from_row_lengths(kept, lengths, validate=False)

    @functools.cached_property
    def _parsers(self) -> dict[str, Any]:
        """A function from the text of a row, bytes [1], to each column."""
        with tf.Graph().as_default() as graph:
            text = tf1.placeholder(tf.string, [1])
            features = self.parse([text])
            session = decoding.session(graph)
            return {
                name: session.make_callable(
                    tf.nest.flatten(feature, expand_composites=True), [text]
                )
                for name, feature in features.items()
            }

    def _problem(self, text: bytes) -> str | None:
        """Returns what is wrong with the text of a row; None if nothing is."""
        with self._lock:
            parsers = self._parsers
        for name, parser in parsers.items():
            try:
                parser(np.array([text], object))
            except tf.errors.InvalidArgumentError as error:
                return self._explained(name, _own_message(error))
        return None

    def _explained(self, name: str, message: str) -> str:
        """Returns TensorFlow's message about a row in the words of its columns."""
        if match := _COUNT.search(message):
            return f"must have {match[1]} fields, got {match[2]}"
        if match := _MISSING.search(message):
            return f"column {self._names[int(match[1])]!r} must have a value or a default, got none"
        if match := _FIELD_NUMBER.search(message):
            column = f"column {self._names[int(match[1])]!r}"
            return f"{message[: match.start()]}{column}{message[match.end() :]}"
        if match := _NUMBER.search(message):
            dtype = self.columns[name].dtype.name
            return f"column {name!r} has what is not a valid {dtype}: {message[match.end() :]}"
        return message


def _own_message(error: tf.errors.OpError) -> str:
    """Returns what an op said, out of what the session says around it."""
    match = re.search(r"^Node: .*\n(.*)$", str(error), re.MULTILINE)
    return match[1] if match else str(error).splitlines()[0]


def _record_default(column: Column | None) -> Any:
    """Returns what `tf.io.decode_csv` takes for a column, None for one that is not wanted."""
    if column is None or column.is_list:
        return tf.constant([""])
    if column.default is None:
        return tf.constant([], column.dtype)
    return tf.constant([column.default], column.dtype)
