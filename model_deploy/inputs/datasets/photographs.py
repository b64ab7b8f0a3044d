"""TF-Slim's two datasets of photographs: `flowers` and `imagenet`."""

import os

from model_deploy import file_systems
from model_deploy.inputs.datasets import dataset, folder, slim_records
from model_deploy.inputs.files import slim_files

_SPLITS = ("train", "validation")
_FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")
_FLOWER_FOLDER = "flower_photos"  # the folder in the official archive


def flowers(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The dataset of 5 kinds of flowers: TFRecords, or the extracted official archive.

    Of the archive about 10% of the photographs are the validation split.

    Raises:
      ValueError: if files are missing.
      CorruptRecordError: if more files are truncated than may be skipped.
    """
    dataset.check_split("flowers", split, _SPLITS)
    root = dataset.required_folder("flowers", data_dir)
    photographs = os.path.join(root, _FLOWER_FOLDER)
    if file_systems.is_folder(photographs):
        return folder.folder(
            split,
            photographs,
            test_percent=10,
            skip_corrupt_records=skip_corrupt_records,
            name="flowers",
            splits=_SPLITS,
        )
    return slim_records.slim_dataset(
        name="flowers",
        split=split,
        splits=_SPLITS,
        data_dir=root,
        class_names=_FLOWERS,
        skip_corrupt_records=skip_corrupt_records,
    )


def imagenet(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The dataset ILSVRC 2012 as TFRecords: label 0 is the background, 1 to 1000 are the classes.

    Class names are those in `labels.txt`, or numbers without that file.

    Raises:
      ValueError: if files are missing.
      CorruptRecordError: if more files are truncated than may be skipped.
    """
    root = dataset.required_folder("imagenet", data_dir)
    has_names = file_systems.is_file(os.path.join(root, "labels.txt"))
    return slim_records.slim_dataset(
        name="imagenet",
        split=split,
        splits=_SPLITS,
        data_dir=root,
        class_names=None if has_names else slim_files.numbered_classes(1001),
        skip_corrupt_records=skip_corrupt_records,
    )
