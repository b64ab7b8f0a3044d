"""`Table`: a dataset of rows, in the pipelines of all examples."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.inputs.order.epochs import Order
from model_deploy.inputs.pipelines import holding
from model_deploy.inputs.pipelines.own_examples import OwnExamples
from model_deploy.inputs.reading import chunks
from model_deploy.inputs.tables.row_source import RowSource

_ROWS_AT_ONCE = 1024


class Table(OwnExamples):
    """A dataset of rows, for `train_batches` and `eval_batches`.

    Args:
      source: the rows.

    Attributes:
      num_examples: number of rows.
      tolerance: the count of skipped rows.
      columns: the columns by name.
      source: the rows.

    Raises:
      ValueError: if there are no rows.
    """

    def __init__(self, source: RowSource) -> None:
        check_at_least("number of rows in paths", source.num_rows, 1)
        self.source, self.num_examples = source, source.num_rows
        self.tolerance, self.columns = source.tolerance, source.columns

    def batching(self, batch_size: int, training: bool, **settings: Any) -> "TableBatching":
        """Returns how the rows become batches; see `OwnExamples`."""
        return TableBatching(self, batch_size, training, **settings)

    def check_order(self, order: Order) -> None:
        """Checks that the rows can be read in an order; see `OwnExamples`."""
        self.source.check_order(order)


@dataclasses.dataclass(frozen=True)
class TableBatching:
    """The settings with which rows become batches, like `Batching` for images.

    Attributes:
      dataset: the table.
      batch_size: rows per batch.
      training: whether to replace corrupt rows.
      seed: ignored, as nothing is random.
      num_readers: number of parallel reads; None for the number of cores.
      include_index: whether batches have "index", the numbers of their rows.
      in_windows: whether numbers come in windows, each of which is read as a whole.

    Raises:
      ValueError: for a number below 1, and a column "index" beside that of `include_index`.
    """

    dataset: Table
    batch_size: int
    training: bool
    seed: int = 0
    num_readers: int | None = None
    include_index: bool = False
    in_windows: bool = False
    reads_windows = False
    tables = ()

    def __post_init__(self) -> None:
        check_at_least("batch_size", self.batch_size, 1)
        check_at_least("num_readers", self.num_readers, 1)
        if self.include_index and "index" in self.dataset.columns:
            raise ValueError("include_index must be False with a column 'index', got True")

    @property
    def _chunks(self) -> tuple[int, int]:
        """How many chunks are read in parallel, and the number of rows in each."""
        readers = self.num_readers or chunks.default_readers(self.dataset.source.is_local)
        return readers, min(_ROWS_AT_ONCE, self.batch_size)

    @property
    def work(self) -> holding.Work:
        """The largest number of rows that are in preparation at the same time."""
        return holding.Work(holding.in_chunks(*self._chunks), 0)

    @property
    def decodes_windows(self) -> bool:
        """Whether the rows of a window are decoded together."""
        return self.in_windows

    @property
    def cached_bytes(self) -> int:
        """Bytes of rows that the process keeps at most."""
        return self.dataset.source.cached_bytes

    def pipeline(self) -> Callable[[Any], Any]:
        """Returns a function from row numbers to batches; see `Batching.pipeline`."""
        plain = tf.autograph.experimental.do_not_convert
        readers, size = self._chunks

        def chunk(numbers: Any) -> Any:
            index = tf.data.Dataset.from_tensors(numbers["index"])
            # If a row has an error, the rows are checked one by one, which names or replaces it.
            good = index.map(plain(self._read)).ignore_errors()
            checked = index.map(plain(self._good_rows)).filter(
                plain(lambda rows: tf.size(rows) > 0)
            )
            return good.concatenate(checked.map(plain(self._read))).take(1)

        def batches(numbers: Any) -> Any:
            if self.in_windows:
                rows = numbers.interleave(plain(chunk), 1, 1, num_parallel_calls=1)
            else:
                rows = chunks.interleaved(numbers.rebatch(size), plain(chunk), readers)
            return rows.rebatch(self.batch_size, drop_remainder=self.training)

        return batches

    def _read(self, index: Any) -> dict[str, Any]:
        """Returns the columns of rows, [n, ...] each."""
        source = self.dataset.source
        stored = source.stored
        arrays = tf.numpy_function(source.read, [index], [each.dtype for each in stored])
        for array, each in zip(arrays, stored, strict=True):
            array.set_shape(each.shape)
        features = source.parse(arrays)
        return features | ({"index": index} if self.include_index else {})

    def _good_rows(self, index: Any) -> Any:
        """Returns the numbers of the rows that can be read in place of some, int64 [n or less]."""
        found = tf.numpy_function(
            lambda rows: self.dataset.source.good_rows(rows, self.training), [index], tf.int64
        )
        found.set_shape([None])
        return tf.boolean_mask(found, found >= 0)
