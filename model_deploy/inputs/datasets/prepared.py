"""Datasets `tfds/NAME`: what `tensorflow_datasets` has prepared in a folder, as TFRecords."""

import os
import re
from typing import Any, NamedTuple

from model_deploy import file_systems
from model_deploy.checks import check_installed
from model_deploy.commands import shortened
from model_deploy.inputs.datasets import dataset, slim_records
from model_deploy.inputs.files.corrupt_records import Tolerance

_PACKAGE = "tensorflow_datasets"
_VERSION = re.compile(r"\d+\.\d+\.\d+")


class _Columns(NamedTuple):
    """What a dataset calls its images and labels, and what they are like."""

    image: str
    label: str
    class_names: tuple[str, ...]
    image_shape: tuple[int | None, int | None, int | None]


def tfds(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    name: str,
    keep_in_memory: bool = True,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """A dataset of images that `tensorflow_datasets` has prepared; nothing is downloaded.

    It takes `pip install 'model_deploy[tfds]'`.

    Args:
      split: one of those that were prepared.
      data_dir: the folder that was the `data_dir` of `tensorflow_datasets`.
      name: `tfds/` and the name, with `/CONFIG` where there are several, and `:1.0.0` for another
        version than the newest one.
      keep_in_memory: whether to keep decoded images of one small size in memory.
      skip_corrupt_records: how many corrupt records may be skipped; each is reported.

    Raises:
      ValueError: if the package is not installed, the folder does not have the dataset in this
        version, or the dataset has not one image and one label as TFRecords.
      CorruptRecordError: if more records are corrupt than may be skipped.
    """
    check_installed(f"dataset {name!r}", _PACKAGE, "tfds")
    tolerance = Tolerance(skip_corrupt_records)
    root = dataset.required_folder(name, data_dir)
    folder = _folder_of(root, name)
    info = _read_info(folder)
    dataset.check_split(name, split, tuple(info.splits))
    columns = _columns(name, info)
    if info.file_format.value != "tfrecord":
        raise ValueError(
            f"dataset {name!r} must be prepared as tfrecord, got {info.file_format.value}"
        )
    return slim_records.record_dataset(
        name=name,
        split=split,
        splits=tuple(info.splits),
        paths=[os.fspath(path) for path in info.splits[split].filepaths],
        class_names=columns.class_names,
        image_shape=columns.image_shape,
        keys=(columns.image, columns.label),
        keep_in_memory=keep_in_memory,
        tolerance=tolerance,
    )


def _folder_of(root: str, name: str) -> str:
    """Returns the folder of the version that a name asks for, or else of the newest one."""
    path, _, version = name.removeprefix("tfds/").partition(":")
    folder = os.path.join(root, *path.split("/"))
    found = file_systems.names_in(folder) if file_systems.is_folder(folder) else []
    versions = [each for each in found if _VERSION.fullmatch(each)]
    if not versions:
        others = ", ".join(each for each in found if file_systems.is_folder(f"{folder}/{each}"))
        raise ValueError(
            f"dataset {name!r} must be prepared in a folder with a version in {folder}, "
            f"got {others or 'none'}"
        )
    versions.sort(key=lambda each: [int(part) for part in each.split(".")])
    if version and version not in versions:
        raise ValueError(
            f"dataset {name!r} must be one of the versions in {folder}, {', '.join(versions)}, "
            f"got {version}"
        )
    return os.path.join(folder, version or versions[-1])


def _read_info(folder: str) -> Any:
    """Returns what the package knows of a folder, a `DatasetInfo`.

    Raises:
      ValueError: if the package cannot read the folder, which another version has written.
    """
    # Imported here, as it takes a second.
    import tensorflow_datasets as tfds  # noqa: PLC0415

    try:
        return tfds.builder_from_directory(folder).info
    except Exception as error:  # of many kinds, by the package's version and the damage
        reason = shortened(str(error)) or type(error).__name__
        raise ValueError(
            f"{folder} must be a folder that {_PACKAGE} {tfds.__version__} can read, got {reason}"
        ) from error


def _columns(name: str, info: Any) -> _Columns:
    """Returns the one image and the one label of a dataset, as its supervised keys name them."""
    import tensorflow_datasets as tfds  # noqa: PLC0415

    keys = info.supervised_keys or ("image", "label")
    features = dict(info.features)
    image, label = (features.get(key) if isinstance(key, str) else None for key in keys[:2])
    known = isinstance(image, tfds.features.Image), isinstance(label, tfds.features.ClassLabel)
    if image is None or label is None or not all(known):
        kinds = ", ".join(f"{key}: {type(each).__name__}" for key, each in features.items())
        raise ValueError(f"dataset {name!r} must have an image and a class label, got {kinds}")
    height, width, channels = image.shape
    return _Columns(keys[0], keys[1], tuple(label.names), (height, width, channels or 3))
