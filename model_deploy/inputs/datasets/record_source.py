"""`RecordSource`: encoded or raw images and their labels in TFRecords of `tf.train.Example`s."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from model_deploy.inputs.files import raw_images, records
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance

# What records of TF-Slim call the image and the label.
KEYS = ("image/encoded", "image/class/label")


class RecordSource(records.RecordFiles):
    """A source of the examples in TFRecord files, in the order of files and records.

    Args:
      files: the indexed files.
      num_classes: labels must be less than this.
      label_offset: subtracted from the labels in the files.
      tolerance: how many corrupt records may be skipped.
      keys: what records call the image and the label.

    Attributes:
      raw_shape: (height, width, channels) of the images if they are raw; None if encoded.
    """

    def __init__(
        self,
        files: Sequence[records.RecordFile],
        num_classes: int,
        label_offset: int,
        tolerance: Tolerance,
        keys: tuple[str, str] = KEYS,
    ) -> None:
        super().__init__(files)
        self.tolerance = tolerance
        self._keys = keys
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
        image, label_key = self._keys
        encoded = features[image].bytes_list.value
        labels = features[label_key].int64_list.value
        for name, values in ((image, encoded), (label_key, labels)):
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
        image, label_key = self._keys
        kinds = {
            image: tf.io.FixedLenFeature([], tf.string),
            label_key: tf.io.FixedLenFeature([], tf.int64),
        }
        kinds |= raw_images.features_in_graph() if self.raw_shape else {}
        features = tf.io.parse_single_example(stored, kinds)
        label = features[label_key] - self._label_offset
        if self.raw_shape:
            label = tf.where(raw_images.is_good(features, self.raw_shape), label, -1)
        # One op that fails for labels out of range.
        label = tf.gather(tf.range(self._num_classes, dtype=tf.int64), label)
        return features[image], label

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """Returns an error that says what is wrong with an example, and in which file."""
        file, record = self.place(index)
        return CorruptRecordError(file.path, record, reason)
