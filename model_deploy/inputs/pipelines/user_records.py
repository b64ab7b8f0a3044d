"""A user's own TFRecords: a function of the user parses a record into features."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy.checks import check_at_least
from model_deploy.inputs.files import records, tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.pipelines import holding
from model_deploy.inputs.pipelines.own_examples import OwnExamples
from model_deploy.inputs.reading import chunks

_RECORDS_AT_ONCE = 32


class RecordDataset(OwnExamples):
    """The records of some TFRecord files, for `train_batches` and `eval_batches`.

    Args:
      paths: the files, on any file system.
      parse_fn: function from a record, string [], to a dict of tensors, by TensorFlow's ops and
        without randomness; in training with a seed, int64 [2], if `takes_seed`.  Tensors have
        known shapes, or are lists, [None], of which batches are `tf.RaggedTensor`s;
        `tf.RaggedTensor`s and `tf.SparseTensor`s stay what they are.
      takes_seed: whether `parse_fn` takes a seed in training.
      skip_corrupt_records: how many unreadable records may be skipped; each is reported.

    Attributes:
      num_examples: number of records.
      tolerance: the count of skipped records.
      files: the indexed files.
      records: the records, numbered over all files.

    Raises:
      ValueError: if there are no records.
      CorruptRecordError: if a file is truncated and `skip_corrupt_records` does not allow it.

    >>> with tf.io.TFRecordWriter("/tmp/numbers.tfrecord") as writer:
    ...     for number in range(5):
    ...         writer.write(str(number).encode())
    >>> numbers = RecordDataset(
    ...     ["/tmp/numbers.tfrecord"], lambda record: {"number": tf.strings.to_number(record)}
    ... )
    >>> numbers.num_examples
    5
    """

    def __init__(
        self,
        paths: Sequence[str],
        parse_fn: Callable[..., dict[str, Any]],
        *,
        takes_seed: bool = False,
        skip_corrupt_records: int = 0,
    ) -> None:
        self.tolerance = Tolerance(skip_corrupt_records)
        self.parse_fn, self.takes_seed = parse_fn, takes_seed
        self.files = tfrecords.index_files([str(each) for each in paths], self.tolerance)
        self.records = records.RecordFiles(self.files)
        self.num_examples = len(self.records)
        check_at_least("number of records in paths", self.num_examples, 1)

    def batching(self, batch_size: int, training: bool, **settings: Any) -> "RecordBatching":
        """Returns how the records become batches; see `OwnExamples`."""
        return RecordBatching(self, batch_size, training, **settings)

    def read(self, index: int, replace: bool) -> tuple[bytes, int]:
        """Reads a record by Python, after TensorFlow failed to; returns it with its number.

        Args:
          index: number of the record over all files.
          replace: whether the next good record replaces a corrupt one.

        Raises:
          CorruptRecordError: if it is corrupt and no more are tolerated.
          ValueError: if all records are corrupt.
        """

        def read(number: int) -> bytes:
            file, record = self.records.place(number)
            return file.read(record)

        found = self.tolerance.first_good(read, index, self.num_examples, replace=replace)
        return (b"", -1) if found is None else found


@dataclasses.dataclass(frozen=True)
class RecordBatching:
    """The settings with which records become batches, like `Batching` for images.

    Attributes:
      dataset: the records.
      batch_size: examples per batch.
      training: whether to replace corrupt records, and to pass seeds.
      seed: first half of each record's seed.
      num_readers: number of parallel reads; None for the number of cores.
      include_index: whether batches have "index", the numbers of their records.
      in_windows: as in `Batching`.

    Raises:
      ValueError: for a number below 1.
    """

    dataset: RecordDataset
    batch_size: int
    training: bool
    seed: int = 0
    num_readers: int | None = None
    include_index: bool = False
    in_windows: bool = False
    cached_bytes = 0
    decodes_windows = False

    def __post_init__(self) -> None:
        check_at_least("batch_size", self.batch_size, 1)
        check_at_least("num_readers", self.num_readers, 1)

    @property
    def _chunks(self) -> tuple[int, int]:
        """How many chunks are read in parallel, and the number of records in each."""
        readers = self.num_readers or chunks.default_readers(self.dataset.records.is_local)
        return readers, min(_RECORDS_AT_ONCE, self.batch_size)

    @functools.cached_property
    def tables(self) -> Sequence[np.ndarray]:
        """The arrays to put into the graph, of any shapes."""
        return self.dataset.records.tables()

    @property
    def reads_windows(self) -> bool:
        """Whether neighbours in a window are read together, as in `Batching`."""
        return self.in_windows

    @property
    def work(self) -> holding.Work:
        """The largest number of records that are in preparation at the same time."""
        return holding.Work(holding.in_chunks(*self._chunks), 0)

    def pipeline(self) -> Callable[[Any], Any]:
        """Returns a function from record numbers to batches; see `Batching.pipeline`."""
        tables = chunks.in_graph(self.tables)

        def parse(record: Any, number: dict[str, Any]) -> dict[str, Any]:
            seed = tf.stack([tf.constant(self.seed, tf.int64), number["position"]])
            seeds = [seed] if self.training and self.dataset.takes_seed else []
            features = self.dataset.parse_fn(record, *seeds)
            return features | ({"index": number["index"]} if self.include_index else {})

        @tf.autograph.experimental.do_not_convert
        def stored(number: dict[str, Any]) -> Any:
            together = number["stored"]
            # An empty string marks a run with an error, but may also be a valid record: read again.
            return tf.cond(
                tf.equal(together, ""),
                lambda: records.read_in_graph(tables, number["index"]),
                lambda: together,
            )

        def read(number: dict[str, Any], record: Any = None) -> dict[str, Any]:
            return parse(stored(number) if record is None else record, number)

        @tf.autograph.experimental.do_not_convert
        def by_python(number: dict[str, Any]) -> dict[str, Any]:
            def found(index: Any) -> tuple[Any, Any]:
                record, place = self.dataset.read(int(index), self.training)
                return np.array(record, object), np.int64(place)

            record, place = tf.numpy_function(found, [number["index"]], [tf.string, tf.int64])
            record.set_shape([])
            place.set_shape([])
            return {"record": record, "index": place, "position": number["position"]}

        is_good = tf.autograph.experimental.do_not_convert(lambda example: example["index"] >= 0)

        def parse_again(example: dict[str, Any]) -> dict[str, Any]:
            return parse(example["record"], example)

        def read_again(numbers: Any) -> Any:
            return numbers.map(by_python).filter(is_good).map(parse_again)

        readers, size = self._chunks
        reading = chunks.Chunks(
            read,
            read_again,
            size,
            readers,
            record_tables=tables,
            at_once=chunks.records_at_once(
                self.tables[-1], size, readers, is_local=self.dataset.records.is_local
            ),
            in_windows=self.in_windows,
            autograph=True,
        )
        return lambda numbers: reading.examples(numbers).rebatch(
            self.batch_size, drop_remainder=self.training
        )
