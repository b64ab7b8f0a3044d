"""The dataset `folder`: a folder with one sub-folder of JPEG or PNG files per class."""

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from model_deploy import file_systems
from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance

_SUFFIXES = (".jpg", ".jpeg", ".png")


class FileSource:
    """A source of images in separate files.

    Args:
      paths: the files.
      labels: the label of each file.
      tolerance: how many invalid files may be skipped.
    """

    def __init__(self, paths: Sequence[str], labels: Sequence[int], tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self._paths = paths
        self.is_local = all(map(file_systems.is_local, paths))
        self._labels = np.array(labels, np.int64)

    def read(self, index: int) -> tuple[bytes, int]:
        """Returns the content of a file and its label.

        Raises:
          CorruptRecordError: if the file cannot be read.
        """
        try:
            return file_systems.read_bytes(self._paths[index]), int(self._labels[index])
        except OSError as error:
            raise self.corrupt(index, f"cannot be read: {error}") from error

    def tables(self) -> Sequence[np.ndarray]:
        """Returns the paths, bytes [n], and the labels, int64 [n]."""
        return [np.array([os.fsencode(each) for each in self._paths], object), self._labels]

    def read_in_graph(self, tables: Sequence[Any], index: Any) -> Any:
        """Returns the content of a file, string []."""
        return tf.io.read_file(tf.gather(tables[0], index))

    def parse_in_graph(self, tables: Sequence[Any], stored: Any, index: Any) -> tuple[Any, Any]:
        """Returns the content of a file, string [], and its label, int64 []."""
        return stored, tf.gather(tables[1], index)

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """Returns an error that says what is wrong with a file."""
        return CorruptRecordError(self._paths[index], 0, reason)


def folder(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    test_percent: int = 20,
    skip_corrupt_records: int = 0,
    name: str = "folder",
    splits: tuple[str, str] = ("train", "test"),
) -> dataset.Dataset:
    """The dataset of images in `<data_dir>/<class>/`, classes in the order of their names.

    A hash of `<class>/<file name>` assigns an image to "train" or "test", so that no image changes
    its split when others are added.

    Args:
      split: one of `splits`.
      data_dir: the folder with one sub-folder per class.
      test_percent: percentage of images in the test split, approximately; 0 to 100.
      skip_corrupt_records: how many invalid files may be skipped; each is reported.
      name: name of the dataset.
      splits: names of the training split and of the test split.

    Raises:
      ValueError: for an unknown split or a `test_percent` out of range; if there are no classes,
        or no images in the split.
    """
    dataset.check_split(name, split, splits)
    if not 0 <= test_percent <= 100:
        raise ValueError(f"test_percent must be from 0 to 100, got {test_percent}")
    root = dataset.required_folder(name, data_dir)
    classes = tuple(
        each
        for each in file_systems.names_in(root)
        if each[0] not in "._" and file_systems.is_folder(os.path.join(root, each))
    )
    if not classes:
        raise ValueError(f"data_dir must have one sub-folder per class, got {root!r} with none")
    paths: list[str] = []
    labels: list[int] = []
    for label, class_name in enumerate(classes):
        names = [
            file_name
            for file_name in _image_names(os.path.join(root, class_name))
            if _is_test(f"{class_name}/{file_name}", test_percent) == (split == splits[1])
        ]
        paths.extend(os.path.join(root, class_name, file_name) for file_name in names)
        labels.extend([label] * len(names))
    if not paths:
        raise ValueError(
            f"sub-folders of {root!r} must have JPEG or PNG files for split {split!r}, got none"
        )
    return dataset.Dataset(
        name=name,
        split=split,
        num_examples=len(paths),
        num_classes=len(classes),
        class_names=classes,
        image_shape=(None, None, 3),
        splits=splits,
        source=FileSource(paths, labels, Tolerance(skip_corrupt_records)),
    )


def _image_names(class_folder: str) -> list[str]:
    names = [each for each in file_systems.names_in(class_folder) if not each.startswith(".")]
    images = [each for each in names if each.lower().endswith(_SUFFIXES)]
    if len(images) < len(names):
        others = [each for each in names if each not in set(images)]
        logging.warning(
            "Left out %d files of %s that are neither JPEG nor PNG by their names, such as %s",
            len(others),
            class_folder,
            others[0],
        )
    return images


def _is_test(name: str, test_percent: int) -> bool:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < test_percent
