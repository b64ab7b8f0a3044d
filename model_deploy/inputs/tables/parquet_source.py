"""`ParquetRows`: the rows of Parquet files, of row groups that are read when they are wanted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from model_deploy import file_systems
from model_deploy.checks import check_whole
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.order.epochs import Order
from model_deploy.inputs.tables import parquet_files, parquet_rows
from model_deploy.inputs.tables.columns import Column
from model_deploy.inputs.tables.row_groups import RowGroups
from model_deploy.inputs.tables.row_source import RowSource, Stored

_MATRICES = (tf.float32, tf.int64)  # in the order of `parquet_rows.take`


class _Group(NamedTuple):
    """A row group: its file, its number in it, the rows before it in the file, their number."""

    path: str
    number: int
    before: int
    rows: int


class ParquetRows(RowSource):
    """The rows of Parquet files.

    Args:
      paths: the files, on any file system.
      columns: the columns that are wanted, by name; None for all.
      cache_bytes: how many bytes of decoded rows are kept; the last row group in any case.
      tolerance: the count of skipped rows.

    Attributes:
      groups: the row groups that are kept.

    Raises:
      ValueError: as `ParquetDataset`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        columns: Mapping[str, Column] | None,
        cache_bytes: int,
        tolerance: Tolerance,
    ) -> None:
        check_whole("cache_bytes", cache_bytes, 1)
        self._cache_bytes, self.tolerance = cache_bytes, tolerance
        self.is_local = all(map(file_systems.is_local, paths))
        self.columns = dict(columns or {})
        self._places: list[_Group] = []
        self._row_bytes = 0
        for path in paths:
            with parquet_files.opened(path) as file:
                self.columns = self.columns or parquet_files.columns_of(path, file.schema_arrow)
                parquet_files.check_schema(path, file.schema_arrow, self.columns)
                self._add_groups(path, file.metadata)
        self._ends = np.cumsum([group.rows for group in self._places])
        self.num_rows = sum(group.rows for group in self._places)
        self._layout = parquet_rows.Layout(self.columns)
        self.groups = RowGroups(self._read_group, cache_bytes)

    @property
    def cached_bytes(self) -> int:
        """Bytes of decoded rows that are kept at most."""
        varies = any(each.is_list or each.dtype == tf.string for each in self.columns.values())
        return self._cache_bytes if varies else min(self._cache_bytes, self._row_bytes)

    @property
    def stored(self) -> Sequence[Stored]:
        """What `read` returns; see `RowSource`."""
        of_dense = [
            Stored(dtype, [None, len(self._layout.dense(dtype.name))]) for dtype in _MATRICES
        ]
        of_strings = [Stored(tf.string, [None]) for _ in self._layout.dense("string")]
        of_lists = [
            Stored(dtype, [None])
            for name in self._layout.lists
            for dtype in (self.columns[name].dtype, tf.int64)
        ]
        return [*of_dense, *of_strings, *of_lists]

    def check_order(self, order: Order) -> None:
        """Checks that rows in random order come from kept row groups, or in blocks.

        Raises:
          ValueError: if each row would cost the read of a row group.
        """
        if order.shuffle and order.shuffle_block is None and self._row_bytes > self._cache_bytes:
            raise ValueError(
                f"shuffle_block must be given for rows of about {self._row_bytes:,} bytes, more "
                f"than cache_bytes={self._cache_bytes:,}, as single rows would each cost the read "
                "of a row group, got None"
            )

    def read(self, indices: np.ndarray) -> list[np.ndarray]:
        """Returns the columns of rows, [n, ...] each; see `RowSource`."""
        order = np.argsort(indices, kind="stable")
        in_order = indices[order]
        of_group = np.searchsorted(self._ends, in_order, side="right")
        parts = []
        for number in np.unique(of_group):
            rows, wanted = self.groups[number], in_order[of_group == number]
            wanted = wanted - (self._ends[number] - self._places[number].rows)
            if any(wrong[wanted].any() for wrong in rows.problems.values()):
                raise ValueError("rows must have no missing values, got some")  # `check` says which
            parts.append((rows, wanted))
        return parquet_rows.take(parts, order, self._layout)

    def parse(self, stored: Sequence[Any]) -> dict[str, Any]:
        """Returns the columns of rows; see `RowSource`.

        Args:
          stored: the columns as tensors, [n, ...] each.
        """
        rest = iter(stored)
        found: dict[str, Any] = {}
        for dtype in _MATRICES:
            names = self._layout.dense(dtype.name)
            values = tf.unstack(next(rest), num=len(names), axis=1)
            found.update(zip(names, values, strict=True))
        found.update({name: next(rest) for name in self._layout.dense("string")})
        for name in self._layout.lists:
            values, lengths = next(rest), next(rest)
            found[name] = tf.RaggedTensor.from_row_lengths(values, lengths, validate=False)
        return {name: found[name] for name in self.columns}

    def check(self, index: int) -> None:
        """Checks that a row can be read, and has a value in each column; see `RowSource`.

        Args:
          index: the number of the row over all files.

        Raises:
          CorruptRecordError: naming file, row and reason.
        """
        number = int(np.searchsorted(self._ends, index, side="right"))
        group = self._places[number]
        row = int(index - (self._ends[number] - group.rows))
        try:
            column = self.groups[number].problem_of(row)
        except ValueError as error:
            raise CorruptRecordError(group.path, group.before + row, str(error)) from error
        if column is not None:
            reason = f"column {column!r} must have a value or a default, got null"
            raise CorruptRecordError(group.path, group.before + row, reason)

    def _add_groups(self, path: str, metadata: Any) -> None:
        """Notes the row groups of a file, and about how large its rows are when decoded."""
        before = 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            self._places.append(_Group(path, number, before, group.num_rows))
            before += group.num_rows
            for place in range(group.num_columns):
                chunk = group.column(place)
                column = self.columns.get(chunk.path_in_schema.split(".")[0])
                if column is None:
                    continue
                width = column.dtype.size or 8
                if column.is_list or column.dtype == tf.string:
                    self._row_bytes += chunk.total_uncompressed_size
                self._row_bytes += width * group.num_rows

    def _read_group(self, number: int) -> parquet_rows.Rows:
        group = self._places[number]
        try:
            with parquet_files.opened(group.path) as file:
                table = file.read_row_group(group.number, columns=list(self.columns))
            return parquet_rows.decode(table, self._layout)
        except ValueError as error:
            raise ValueError(f"row group {group.number} must be readable: {error}") from error
