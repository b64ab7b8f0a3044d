"""TFRecord files with random access: reading any record, or neighbours together.

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


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """Where the records of a file are.

    Attributes:
      path: the file.
      offsets: where the data of each record begin, int64 [number of records].
      lengths: how many bytes they are, int64 [number of records].
    """

    path: str
    offsets: np.ndarray
    lengths: np.ndarray

    def read(self, record: int) -> bytes:
        """The data of a record.

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
    """The records of some files, numbered over all of them.

    Args:
      files: the indexed files.

    Attributes:
      is_local: whether all of them are on this machine.
    """

    def __init__(self, files: Sequence[RecordFile]) -> None:
        self._files = files
        self._ends = np.cumsum([len(file.offsets) for file in files])
        self.is_local = all(file_systems.is_local(file.path) for file in files)

    def __len__(self) -> int:
        return sum(len(file.offsets) for file in self._files)

    def place(self, index: int) -> tuple[RecordFile, int]:
        """The file of a record, and its number in that file."""
        number = int(np.searchsorted(self._ends, index, side="right"))
        file = self._files[number]
        return file, int(index - self._ends[number] + len(file.offsets))

    def tables(self) -> Sequence[np.ndarray]:
        """Where the records are, as arrays that `read_in_graph` and others look up.

        Returns:
          The paths, bytes [files]; and of each record the number of its file, int32 [n], where it
          begins, int64 [n], and how many bytes it has, int64 [n].
        """
        sizes = [len(file.offsets) for file in self._files]
        return [
            np.array([os.fsencode(file.path) for file in self._files], object),
            np.repeat(np.arange(len(self._files), dtype=np.int32), sizes),
            np.concatenate([file.offsets for file in self._files]) - HEADER.size,
            np.concatenate([file.lengths for file in self._files]) + HEADER.size + FOOTER.size,
        ]

    def read_in_graph(self, tables: Sequence[Any], index: Any) -> Any:
        """The data of a record, string []; see the function of this name."""
        return read_in_graph(tables, index)


def read_in_graph(tables: Sequence[Any], index: Any) -> Any:
    """The data of a record, string [], read by TensorFlow's ops, which check its checksum.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      index: int64 [], the number of the record over all files.
    """
    return record_at(*(each[0] for each in _places(tables, index[tf.newaxis]))).get_single_element()


def records_in_graph(tables: Sequence[Any], indices: Any) -> Any:
    """The data of some records, each read by itself, as a `tf.data.Dataset` of strings [].

    For small records half of the work of `read_in_graph` for each.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      indices: int64 [n], their numbers over all files.
    """
    places = tf.data.Dataset.from_tensor_slices(_places(tables, indices))
    return places.flat_map(tf.autograph.experimental.do_not_convert(record_at))


def record_at(path: Any, begin: Any, size: Any) -> Any:
    """The data of a record as a `tf.data.Dataset` of one string [].

    Args:
      path: string [], the file.
      begin: int64 [], where the record begins.
      size: int64 [], how many bytes it has, with what stands around its data.
    """
    # As large a buffer as the record: each is a single request.
    return _records_from(path, begin, size).take(1)


def _places(tables: Sequence[Any], indices: Any) -> tuple[Any, Any, Any]:
    """Paths, beginnings and sizes of records, [n] each."""
    paths, files, begins, sizes = tables
    in_files = tf.gather(files, indices)
    return tf.gather(paths, in_files), tf.gather(begins, indices), tf.gather(sizes, indices)


def runs_in_graph(tables: Sequence[Any], indices: Any) -> tuple[Any, Any]:
    """Which of some records are neighbours in a file.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      indices: int64 [n], numbers over all files in ascending order; n is at least 1.

    Returns:
      The first number of each run and how many it has, int64 [runs] each.
    """
    files = tf.gather(tables[1], indices)
    follows = tf.equal(indices[1:], indices[:-1] + 1) & tf.equal(files[1:], files[:-1])
    begins = tf.concat([[0], tf.where(~follows)[:, 0] + 1], axis=0)
    ends = tf.concat([begins[1:], tf.shape(indices, tf.int64)], axis=0)
    return tf.gather(indices, begins), ends - begins


def read_run_in_graph(tables: Sequence[Any], first: Any, count: Any) -> Any:
    """The data of neighbours in a file, string [count], checked.

    Args:
      tables: the tensors of `RecordFiles.tables`.
      first: int64 [], the number of the first record over all files.
      count: int64 [].
    """
    size = tf.reduce_sum(tables[3][first : first + count])
    path, begin, _ = (each[0] for each in _places(tables, first[tf.newaxis]))
    records = _records_from(path, begin, tf.minimum(size, _MAX_REQUEST)).take(count)
    return records.batch(count, drop_remainder=True).get_single_element()


def _records_from(path: Any, begin: Any, buffer_size: Any) -> Any:
    records = tf.raw_ops.TFRecordDatasetV2(
        filenames=[path], compression_type="", buffer_size=buffer_size, byte_offsets=[begin]
    )
    return tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))
