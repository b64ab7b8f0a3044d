"""TFRecord files with random access: reads any record, or neighbouring records together.

A record is the length of its data (8 bytes, little-endian), a checksum of the length,
the data and a checksum of the data: 4 bytes each, CRC-32C, rotated and offset
("masked").  `tfrecords` finds where the records are.
"""

import dataclasses
import os
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from model_deploy import file_systems, internals
from model_deploy.inputs.files.corrupt_records import CorruptRecordError

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
_MAX_REQUEST = 2**24
_FEW = 8


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """The positions of the records in a file.

    Attributes:
      path: the file.
      offsets: start of each record's data in the file, int64 [number of records].
      lengths: number of bytes of each record's data, int64 [number of records].
    """

    path: str
    offsets: np.ndarray
    lengths: np.ndarray

    def read(self, record: int) -> bytes:
        """Returns the data of a record.

        Raises:
          CorruptRecordError: if the data cannot be read or do not match their checksum.
        """
        try:
            with file_systems.as_os_errors():
                content = internals.record_at(self.path, int(self.offsets[record]) - HEADER.size)
        except OSError as error:
            raise CorruptRecordError(self.path, record, f"cannot be read: {error}") from error
        if content is None or len(content) != self.lengths[record]:
            raise CorruptRecordError(self.path, record, "its data do not match their checksum")
        return content


class RecordFiles:
    """The records of several files, numbered over all of them.

    Args:
      files: the indexed files.

    Attributes:
      is_local: whether all files are on this machine.
    """

    def __init__(self, files: Sequence[RecordFile]) -> None:
        self._files = files
        self._ends = np.cumsum([len(file.offsets) for file in files])
        self.is_local = all(file_systems.is_local(file.path) for file in files)

    def __len__(self) -> int:
        return sum(len(file.offsets) for file in self._files)

    def place(self, index: int) -> tuple[RecordFile, int]:
        """Returns the file of a record, and its number in that file."""
        number = int(np.searchsorted(self._ends, index, side="right"))
        file = self._files[number]
        return file, int(index - self._ends[number] + len(file.offsets))

    def tables(self) -> Sequence[np.ndarray]:
        """Returns the positions of all records, as arrays for `read_in_graph` and other functions.

        Returns:
          The paths, bytes [files]; and for each record the number of its file, int32 [n], its
          start, int64 [n], and its size in bytes, int64 [n].
        """
        sizes = [len(file.offsets) for file in self._files]
        return [
            np.array([os.fsencode(file.path) for file in self._files], object),
            np.repeat(np.arange(len(self._files), dtype=np.int32), sizes),
            np.concatenate([file.offsets for file in self._files]) - HEADER.size,
            np.concatenate([file.lengths for file in self._files]) + HEADER.size + FOOTER.size,
        ]

    def read_in_graph(self, tables: Sequence[Any], index: Any) -> Any:
        """Returns the data of a record, string []; see the function `read_in_graph`."""
        return read_in_graph(tables, index)


def read_in_graph(tables: Sequence[Any], index: Any) -> Any:
    """Returns the data of a record, string [], read and verified by TensorFlow's ops.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      index: int64 [], the number of the record over all files.
    """
    path, begin, size = _places(tables, index[tf.newaxis])
    # A buffer of the record's size, so that it is read by one request.
    return _records_from(path, begin, size[0]).take(1).get_single_element()


def records_in_graph(tables: Sequence[Any], indices: Any, most: int, at_once: int) -> Any:
    """Returns the data of records, read one by one, as a `tf.data.Dataset` of strings [].

    For small records it takes a fifth of the time of calling `read_in_graph` for each: a record has
    an iterator of its own, but no function that TensorFlow calls.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      indices: int64 [n], the numbers of the records over all files, n from 1 to `most`.
      most: the largest n.
      at_once: how many records may be opened before the first of them is given, each as a file of
        its own: the more, the less time it takes; fewer than 8 gain nothing, so it is one then.
    """
    count = tf.size(indices, tf.int64)
    # Where there are fewer, the last one stands for those that are missing.
    numbers = tf.gather(indices, tf.minimum(tf.range(most, dtype=tf.int64), count - 1))
    paths, begins, sizes = _places(tables, numbers)
    places = zip(tf.split(paths, most), tf.split(begins, most), tf.unstack(sizes), strict=True)
    each = [_records_from(*place) for place in places]
    if at_once < _FEW:
        return _in_turn([record.take(1) for record in each]).take(count)
    groups = [_firsts(each[first : first + at_once]) for first in range(0, most, at_once)]
    return _in_turn(groups).unbatch().take(count)


def _firsts(datasets: Sequence[Any]) -> Any:
    """Returns the first elements, strings [], as a `tf.data.Dataset` of one, string [n].

    To fill a batch of two, TensorFlow asks for more, and so closes the files before it goes on.
    """
    join = tf.autograph.experimental.do_not_convert(lambda *elements: tf.concat(elements, axis=0))
    return tf.data.Dataset.zip(*datasets).take(1).batch(2).map(join)


def _in_turn(datasets: Sequence[Any]) -> Any:
    """Concatenates instances of `tf.data.Dataset`, by a tree, as an element passes all levels."""
    if len(datasets) == 1:
        return datasets[0]
    half = len(datasets) // 2
    return _in_turn(datasets[:half]).concatenate(_in_turn(datasets[half:]))


def _places(tables: Sequence[Any], indices: Any) -> tuple[Any, Any, Any]:
    """Returns paths, starts and sizes of records, [n] each."""
    paths, files, begins, sizes = tables
    in_files = tf.gather(files, indices)
    return tf.gather(paths, in_files), tf.gather(begins, indices), tf.gather(sizes, indices)


def runs_in_graph(tables: Sequence[Any], indices: Any) -> tuple[Any, Any]:
    """Groups records into runs of neighbours in a file.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      indices: int64 [n], numbers over all files in ascending order; n is at least 1.

    Returns:
      The first number of each run and the number of records in it, int64 [runs] each.
    """
    files = tf.gather(tables[1], indices)
    follows = tf.equal(indices[1:], indices[:-1] + 1) & tf.equal(files[1:], files[:-1])
    begins = tf.concat([[0], tf.where(~follows)[:, 0] + 1], axis=0)
    ends = tf.concat([begins[1:], tf.shape(indices, tf.int64)], axis=0)
    return tf.gather(indices, begins), ends - begins


def read_run_in_graph(tables: Sequence[Any], first: Any, count: Any) -> Any:
    """Returns the verified data of neighbouring records in a file, string [count].

    Args:
      tables: the tensors of `RecordFiles.tables`.
      first: int64 [], the number of the first record over all files.
      count: int64 [], the number of records.
    """
    size = tf.reduce_sum(tables[3][first : first + count])
    path, begin, _ = _places(tables, first[tf.newaxis])
    records = _records_from(path, begin, tf.minimum(size, _MAX_REQUEST)).take(count)
    return records.batch(count, drop_remainder=True).get_single_element()


def _records_from(path: Any, begin: Any, buffer_size: Any) -> Any:
    """Returns the records from a place in a file on, as a `tf.data.Dataset` of strings [].

    Args:
      path: string [1], the file.
      begin: int64 [1], the start of the first record.
      buffer_size: int64 [], bytes that are read by one request.
    """
    records = tf.raw_ops.TFRecordDatasetV2(
        filenames=path, compression_type="", buffer_size=buffer_size, byte_offsets=begin
    )
    return tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))
