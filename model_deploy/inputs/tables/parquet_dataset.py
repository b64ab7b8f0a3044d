"""`ParquetDataset`: Parquet files as a dataset, by the package `pyarrow`."""

import os
from collections.abc import Sequence

from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.tables import parquet_files
from model_deploy.inputs.tables.columns import Columns, checked_columns, checked_paths
from model_deploy.inputs.tables.parquet_source import ParquetRows
from model_deploy.inputs.tables.table import Table


class ParquetDataset(Table):
    """The rows of Parquet files, for `train_batches` and `eval_batches`.

    It takes `pip install 'model_deploy[parquet]'`.  Row groups are read when a row of them is
    wanted, and the latest are kept.  Where all rows are kept any order is fast.  Where they are
    more than `cache_bytes`, training takes `shuffle_block`, and each block costs the read of a
    row group: so row groups should be small, or blocks large.

    Args:
      paths: the files, on any file system.
      columns: the columns that batches have: for each name a dtype, float32, int64 or string, or a
        `Column`.  By default all columns: whole numbers and booleans as int64, other numbers as
        float32, texts and bytes as string, lists of these as lists.  A null is an error unless the
        column has a default.
      cache_bytes: how many bytes of decoded rows this process keeps; the last row group in any
        case.
      skip_corrupt_records: how many rows with an error may be skipped; each is reported.

    Attributes:
      num_examples: number of rows.
      tolerance: the count of skipped rows.
      columns: the columns by name.
      source: the rows.

    Raises:
      ImportError: if `pyarrow` is not installed.
      ValueError: for a file that cannot be read, a column that files do not have or have in
        another type, files without rows, and `cache_bytes` below 1.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        columns: Columns | None = None,
        *,
        cache_bytes: int = 2**30,
        skip_corrupt_records: int = 0,
    ) -> None:
        parquet_files.pyarrow_parquet()
        wanted = None if columns is None else checked_columns(columns)
        tolerance = Tolerance(skip_corrupt_records)
        super().__init__(ParquetRows(checked_paths(paths), wanted, cache_bytes, tolerance))
