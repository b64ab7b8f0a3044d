"""A user's own TFRecords: a function of a record makes the features, whatever they are."""

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
from model_deploy.inputs.reading import chunks

_RECORDS_AT_ONCE = 32


class RecordDataset:
    """The records of some TFRecord files, for `train_batches` and `eval_batches`.

    Args:
      paths: the files, on any file system.
      parse_fn: from a record, string [], to a dict of tensors of known shapes; TensorFlow's ops
        alone, and nothing random.  In training it may take a seed, int64 [2], as well.
      takes_seed: whether it does.
      skip_corrupt_records: how many records that cannot be read are skipped, and reported.

    Attributes:
      num_examples: how many records there are.
      tolerance: what was skipped.
      files: where the records of each file are.
      records: the records, numbered over all files.

    Raises:
      ValueError: if there are no records.
      CorruptRecordError: if a file is truncated, and that is not tolerated.

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

    def read(self, index: int, replace: bool) -> tuple[bytes, int]:
        """A record and its number: by Python, once TensorFlow could not read it.

        Args:
          index: its number over all files.
          replace: whether the next good record takes its place.

        Raises:
          CorruptRecordError: if it is corrupt, and one more than is tolerated.
          ValueError: if all records are corrupt.
        """

        def read(number: int) -> bytes:
            file, record = self.records.place(number)
            return file.read(record)

        found = self.tolerance.first_good(read, index, self.num_examples, replace=replace)
        return (b"", -1) if found is None else found


@dataclasses.dataclass(frozen=True)
class RecordBatching:
    """How records become batches: what `Batching` is for images.

    Attributes:
      dataset: the records.
      batch_size: examples per batch.
      training: whether a bad record is replaced, and there is a seed.
      seed: first half of each record's seed.
      num_readers: reads at the same time; None for as many as cores.
      include_index: whether batches also carry "index", the numbers of their records.
      in_windows: as that of `Batching`.

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

    def __post_init__(self) -> None:
        check_at_least("batch_size", self.batch_size, 1)
        check_at_least("num_readers", self.num_readers, 1)

    @property
    def _chunks(self) -> tuple[int, int]:
        """How many chunks are read at the same time, and the records of each."""
        readers = self.num_readers or chunks.default_readers(self.dataset.records.is_local)
        return readers, min(_RECORDS_AT_ONCE, self.batch_size)

    @functools.cached_property
    def tables(self) -> Sequence[np.ndarray]:
        """The arrays that enter the graph, of any shapes."""
        return self.dataset.records.tables()

    @property
    def reads_windows(self) -> bool:
        """Whether neighbours in a window are read together, as that of `Batching`."""
        return self.in_windows

    @property
    def work(self) -> holding.Work:
        """The most records that are being made into examples at the same time."""
        return holding.Work(holding.in_chunks(*self._chunks), 0)

    def pipeline(self) -> Callable[[Any], Any]:
        """A function from record numbers to batches of features; see `Batching.pipeline`."""
        tables = chunks.in_graph(self.tables)

        def parse(record: Any, number: dict[str, Any]) -> dict[str, Any]:
            seed = tf.stack([tf.constant(self.seed, tf.int64), number["position"]])
            seeds = [seed] if self.training and self.dataset.takes_seed else []
            features = self.dataset.parse_fn(record, *seeds)
            return features | ({"index": number["index"]} if self.include_index else {})

        @tf.autograph.experimental.do_not_convert
        def stored(number: dict[str, Any]) -> Any:
            together = number["stored"]
            # Empty ones, too, are of a run with an error, or so they look: nobody knows which.
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
            in_windows=self.in_windows,
            autograph=True,
        )
        return lambda numbers: reading.examples(numbers).rebatch(
            self.batch_size, drop_remainder=self.training
        )
