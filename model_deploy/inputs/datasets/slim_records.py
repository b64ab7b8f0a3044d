"""TFRecord datasets in the format of TF-Slim, and the generic dataset `tfrecord`.

The files of a split are `<name>_<split>*.tfrecord` or `<split>-*-of-*`.  Each record is a
`tf.train.Example` with `image/encoded` (JPEG or PNG; or bytes, see `raw_images`) and
`image/class/label`.  A `labels.txt` beside them names the classes, one `label:name` per line.
"""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from model_deploy.checks import check_at_least
from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.files import raw_images, records, slim_files, tfrecords
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.reading import decoded_files, in_memory, sources


class RecordSource(records.RecordFiles):
    """A source of the examples in TFRecord files, in the order of files and records.

    Args:
      files: the indexed files.
      num_classes: labels must be less than this.
      label_offset: subtracted from the labels in the files.
      tolerance: how many corrupt records may be skipped.

    Attributes:
      raw_shape: (height, width, channels) of the images if they are raw; None if encoded.
    """

    def __init__(
        self,
        files: Sequence[records.RecordFile],
        num_classes: int,
        label_offset: int,
        tolerance: Tolerance,
    ) -> None:
        super().__init__(files)
        self.tolerance = tolerance
        self.raw_shape = raw_images.find_shape(files, tolerance.limit + 1)
        self._num_classes = num_classes
        self._label_offset = label_offset

    def read(self, index: int) -> tuple[bytes, int]:
        """Returns the encoded image and the label of an example.

        Raises:
          CorruptRecordError: if the record is corrupt, lacks image or label, or has an invalid
            label.
        """
        file, record = self.place(index)
        try:
            features = tf.train.Example.FromString(file.read(record)).features.feature
        except DecodeError as error:
            raise self.corrupt(index, "must be a tf.train.Example, and does not parse") from error
        encoded = features["image/encoded"].bytes_list.value
        labels = features["image/class/label"].int64_list.value
        for name, values in (("image/encoded", encoded), ("image/class/label", labels)):
            if len(values) != 1:
                raise self.corrupt(index, f"{name} must have 1 value, got {len(values)}")
        label = labels[0] - self._label_offset
        if not 0 <= label < self._num_classes:
            reason = f"label must be from 0 to {self._num_classes - 1}, got {label}"
            raise self.corrupt(index, reason)
        self._check_kind(index, features, len(encoded[0]))
        return encoded[0], label

    def _check_kind(self, index: int, features: Mapping[str, Any], num_bytes: int) -> None:
        """Checks that a record is encoded, or raw with the common shape, as the first one is."""
        try:
            shape = (
                raw_images.checked_shape(features, num_bytes)
                if raw_images.is_raw(features)
                else None
            )
        except ValueError as error:
            raise self.corrupt(index, str(error)) from error
        if shape != self.raw_shape:
            found, wanted = (
                f"a raw image of {list(each)}" if each else "an encoded image"
                for each in (shape, self.raw_shape)
            )
            raise self.corrupt(index, f"must be {wanted}, as the first good record, got {found}")

    def parse_in_graph(self, tables: Sequence[Any], stored: Any, index: Any) -> tuple[Any, Any]:
        """Returns the encoded image, string [], and the label, int64 [], of a record."""
        del tables, index  # the record has everything
        kinds = {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        }
        kinds |= raw_images.features_in_graph() if self.raw_shape else {}
        features = tf.io.parse_single_example(stored, kinds)
        label = features["image/class/label"] - self._label_offset
        if self.raw_shape:
            label = tf.where(raw_images.is_good(features, self.raw_shape), label, -1)
        # One op that fails for labels out of range.
        label = tf.gather(tf.range(self._num_classes, dtype=tf.int64), label)
        return features["image/encoded"], label

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """Returns an error that says what is wrong with an example, and in which file."""
        file, record = self.place(index)
        return CorruptRecordError(file.path, record, reason)


@dataclasses.dataclass(frozen=True)
class _Found:
    """The files of a split, and the common properties of their records; see `slim_dataset`."""

    name: str
    paths: Sequence[str]
    num_classes: int
    label_offset: int
    tolerance: Tolerance
    image_shape: tuple[int | None, int | None, int | None]

    @functools.cached_property
    def records(self) -> RecordSource:
        """The source of records; indexes the files at first use.

        Raises:
          ValueError: if files are unreadable or hold no record.
          CorruptRecordError: if more records are corrupt than are tolerated.
        """
        files = tfrecords.index_files(self.paths, self.tolerance)
        records = RecordSource(files, self.num_classes, self.label_offset, self.tolerance)
        if not len(records):
            raise ValueError(
                f"files of dataset {self.name!r} must hold records, got none in {self.paths}"
            )
        return records

    def in_memory(self) -> sources.ArraySource | None:
        """Returns all images, decoded now or at an earlier start; None if too large."""
        if None in self.image_shape:
            return None
        kept = self._kept()
        arrays = kept.read() if kept else None
        if arrays is None:
            shape = in_memory.fits(len(self.records), self.image_shape)
            if shape is None:
                return None
            arrays = in_memory.decode_all(self.records, len(self.records), shape)
            # Not kept with corrupt records, so that they are reported at each start.
            if kept and not self.tolerance.skipped:
                kept.write(*arrays)
        return sources.ArraySource(lambda: arrays)

    def _kept(self) -> decoded_files.DecodedFile | None:
        settings = {"shape": self.image_shape, "label_offset": self.label_offset}
        with contextlib.suppress(OSError):  # which `records` will report
            return decoded_files.DecodedFile(self.paths, num_classes=self.num_classes, **settings)
        return None


def slim_dataset(
    *,
    name: str,
    split: str,
    splits: tuple[str, ...],
    data_dir: str | os.PathLike[str] | None,
    image_shape: tuple[int | None, int | None, int | None] = (None, None, 3),
    class_names: tuple[str, ...] | None = None,
    label_offset: int = 0,
    keep_in_memory: bool = True,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """Returns a split of a TFRecord dataset in the format of TF-Slim.

    All files are indexed at once, so that truncated files are found before training.  Images of one
    small size are also decoded and checked at once, and kept in a file for the next start; see
    `decoded_files`.

    Args:
      name: name of the dataset, with which file names may start.
      split: one of `splits`.
      splits: the names of all splits.
      data_dir: the folder of the files.
      image_shape: (height, width, channels); None for a size that varies.
      class_names: names of the classes; by default from `labels.txt`.
      label_offset: subtracted from the labels in the files.
      keep_in_memory: whether to keep decoded images of one small size in memory.
      skip_corrupt_records: how many corrupt records may be skipped; each is reported.

    Raises:
      ValueError: if files are missing, unreadable or without records.
      CorruptRecordError: if more records are corrupt than may be skipped.
    """
    dataset.check_split(name, split, splits)
    folder = dataset.required_folder(name, data_dir)
    tolerance = Tolerance(skip_corrupt_records)
    paths = slim_files.find_shards(folder, name, split)
    names = class_names or slim_files.read_class_names(folder)
    found = _Found(name, paths, len(names), label_offset, tolerance, image_shape)
    source: sources.Source | None = found.in_memory() if keep_in_memory else None
    if isinstance(source, sources.ArraySource):
        num_examples = len(source.arrays[1])
    else:
        source, num_examples = found.records, len(found.records)
        if found.records.raw_shape:
            known = zip(image_shape, found.records.raw_shape, strict=True)
            height, width, channels = (size if size is not None else its for size, its in known)
            image_shape = (height, width, channels)
    return dataset.Dataset(
        name=name,
        split=split,
        num_examples=num_examples,
        num_classes=len(names),
        class_names=names,
        image_shape=image_shape,
        splits=splits,
        source=source,
    )


def tfrecord(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    file_prefix: str = "*",
    num_classes: int | None = None,
    image_size: int | None = None,
    channels: int = 3,
    label_offset: int = 0,
    keep_in_memory: bool = True,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The dataset in any TFRecord files in the format of TF-Slim.

    Args:
      split: files are `<file_prefix>_<split>*.tfrecord` or `<split>-*-of-*`.
      data_dir: the folder of the files.
      file_prefix: start of the file names; by default any.
      num_classes: number of classes; required without `labels.txt`.
      image_size: side of the images if the same for all; small datasets are then decoded once and
        kept in memory.
      channels: number of channels, 1 or 3.
      label_offset: subtracted from the labels in the files.
      keep_in_memory: whether to keep decoded images of one small size in memory.
      skip_corrupt_records: how many corrupt records may be skipped; each is reported.

    Raises:
      ValueError: see `slim_dataset`; and for `num_classes` or `image_size` below 1.
    """
    check_at_least("num_classes of dataset 'tfrecord'", num_classes, 1)
    check_at_least("image_size of dataset 'tfrecord'", image_size, 1)
    return slim_dataset(
        name=file_prefix,
        split=split,
        splits=(split,),
        data_dir=data_dir,
        image_shape=(image_size, image_size, channels),
        class_names=None if num_classes is None else slim_files.numbered_classes(num_classes),
        label_offset=label_offset,
        keep_in_memory=keep_in_memory,
        skip_corrupt_records=skip_corrupt_records,
    )
