"""TFRecord datasets in the format of TF-Slim, and the generic dataset `tfrecord`.

The files of a split are `<name>_<split>*.tfrecord` or `<split>-*-of-*`.  Each record is a
`tf.train.Example` with `image/encoded` (JPEG or PNG; or bytes, see `raw_images`) and
`image/class/label`.  A `labels.txt` beside them names the classes, one `label:name` per line.
"""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Sequence

from model_deploy.checks import check_at_least
from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.datasets.record_source import KEYS, RecordSource
from model_deploy.inputs.files import slim_files, tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.reading import decoded_files, in_memory, sources


@dataclasses.dataclass(frozen=True)
class _Found:
    """The files of a split, and the common properties of their records; see `slim_dataset`."""

    name: str
    paths: Sequence[str]
    num_classes: int
    label_offset: int
    tolerance: Tolerance
    image_shape: tuple[int | None, int | None, int | None]
    keys: tuple[str, str] = KEYS

    @functools.cached_property
    def records(self) -> RecordSource:
        """The source of records; indexes the files at first use.

        Raises:
          ValueError: if files are unreadable or hold no record.
          CorruptRecordError: if more records are corrupt than are tolerated.
        """
        files = tfrecords.index_files(self.paths, self.tolerance)
        records = RecordSource(
            files, self.num_classes, self.label_offset, self.tolerance, self.keys
        )
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
    tolerance = Tolerance(skip_corrupt_records)
    folder = dataset.required_folder(name, data_dir)
    return record_dataset(
        name=name,
        split=split,
        splits=splits,
        paths=slim_files.find_shards(folder, name, split),
        class_names=class_names or slim_files.read_class_names(folder),
        image_shape=image_shape,
        label_offset=label_offset,
        keep_in_memory=keep_in_memory,
        tolerance=tolerance,
    )


def record_dataset(
    *,
    name: str,
    split: str,
    splits: tuple[str, ...],
    paths: Sequence[str],
    class_names: tuple[str, ...],
    image_shape: tuple[int | None, int | None, int | None],
    label_offset: int = 0,
    keys: tuple[str, str] = KEYS,
    keep_in_memory: bool = True,
    tolerance: Tolerance,
) -> dataset.Dataset:
    """Returns a split of a dataset from its TFRecord files.

    Args:
      name: name of the dataset.
      split: one of `splits`.
      splits: the names of all splits.
      paths: the files of the split.
      class_names: names of the classes.
      image_shape: (height, width, channels); None for a size that varies.
      label_offset: subtracted from the labels in the files.
      keys: what records call the image and the label.
      keep_in_memory: whether to keep decoded images of one small size in memory.
      tolerance: how many corrupt records may be skipped; each is reported.

    Raises:
      ValueError: if files are unreadable or without records.
      CorruptRecordError: if more records are corrupt than may be skipped.
    """
    names = class_names
    found = _Found(name, paths, len(names), label_offset, tolerance, image_shape, keys)
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
