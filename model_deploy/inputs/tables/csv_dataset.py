"""`CsvDataset`: CSV files as a dataset."""

import os
from collections.abc import Sequence

from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.tables.columns import Columns, checked_columns, checked_paths
from model_deploy.inputs.tables.csv_source import CsvFormat, CsvRows
from model_deploy.inputs.tables.table import Table


class CsvDataset(Table):
    """The rows of CSV files (RFC 4180), for `train_batches` and `eval_batches`.

    The rows of each file are found at the start; the index is kept as that of TFRecords is, so
    files are not compressed.  A row is parsed by `tf.io.decode_csv`.

    Args:
      paths: the files, on any file system.
      columns: the columns that batches have: for each name a dtype, float32, int64 or string, or a
        `Column`.  A missing value, an empty field, is an error unless the column has a default; an
        empty field of a list is an empty list.
      names: the names of all fields of a row, in order; None if the first row of each file, the
        same in all, has them.
      delimiter: the character between fields.
      list_separator: what stands between the values of a list.
      quoting: whether double quotes may enclose fields, which may then hold delimiters and line
        breaks.
      na_value: a further text that marks a missing value.
      skip_corrupt_records: how many rows with an error may be skipped; each is reported.

    Attributes:
      num_examples: number of rows.
      tolerance: the count of skipped rows.
      columns: the columns by name.
      source: the rows.

    Raises:
      ValueError: for a file that cannot be read or is compressed, a quote that is not closed,
        headers that differ, a column that files do not have, and files without rows.

    >>> from model_deploy.inputs import Column
    >>> with open("/tmp/clicks.csv", "w") as file:
    ...     _ = file.write("label,seen\\n1,7|8|9\\n0,\\n")
    >>> clicks = CsvDataset(
    ...     ["/tmp/clicks.csv"], {"label": "float32", "seen": Column("int64", is_list=True)}
    ... )
    >>> clicks.num_examples
    2
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        columns: Columns,
        *,
        names: Sequence[str] | None = None,
        delimiter: str = ",",
        list_separator: str = "|",
        quoting: bool = True,
        na_value: str = "",
        skip_corrupt_records: int = 0,
    ) -> None:
        form = CsvFormat(names, delimiter, list_separator, quoting, na_value)
        tolerance = Tolerance(skip_corrupt_records)
        rows = CsvRows(checked_paths(paths), checked_columns(columns), form, tolerance)
        super().__init__(rows)
