"""The dataset `hf`: what the package `datasets` of Hugging Face has saved to disk."""

import os
from typing import Any

from model_deploy import file_systems
from model_deploy.checks import check_installed
from model_deploy.commands import shortened
from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance

_PACKAGE = "datasets"
# The one split of a dataset that was saved without splits.
_ALL = "train"


class SavedRows:
    """A source of encoded images in the rows of a dataset, which the package maps from its files.

    Args:
      rows: a `datasets.Dataset`, whose images are not decoded.
      folder: the folder, for errors.
      image: name of the column of images.
      label: name of the column of labels.
      tolerance: how many rows may be skipped.
    """

    def __init__(
        self, rows: Any, folder: str, image: str, label: str, tolerance: Tolerance
    ) -> None:
        self.tolerance = tolerance
        self._rows, self._folder, self._image, self._label = rows, folder, image, label

    def read(self, index: int) -> tuple[bytes, int]:
        """Returns the encoded image and the label of a row.

        Raises:
          CorruptRecordError: if the row cannot be read, or lacks image or label.
        """
        try:
            row = self._rows[int(index)]
        except Exception as error:  # of Arrow, of many kinds
            raise self.corrupt(index, f"cannot be read: {error}") from error
        image, label = row[self._image], row[self._label]
        if image is None or label is None or label < 0:
            raise self.corrupt(index, "must have an image and a label, got none")
        if image["bytes"] is not None:
            return image["bytes"], int(label)
        try:
            return file_systems.read_bytes(image["path"]), int(label)
        except OSError as error:
            raise self.corrupt(index, f"its image cannot be read: {error}") from error

    def corrupt(self, index: int, reason: str) -> CorruptRecordError:
        """Returns an error that says what is wrong with a row."""
        return CorruptRecordError(self._folder, int(index), reason)


def hf(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """A dataset of images that `save_to_disk` of Hugging Face's `datasets` has written.

    It takes `pip install 'model_deploy[hf]'`.

    Args:
      split: one of the saved ones; `train` for a dataset without splits.
      data_dir: the folder.
      skip_corrupt_records: how many corrupt rows may be skipped; each is reported.

    Raises:
      ValueError: if the package is not installed, or cannot read the folder, or the dataset has not
        one column of images and one of class labels.
    """
    check_installed("dataset 'hf'", _PACKAGE, "hf")
    folder = dataset.required_folder("hf", data_dir)
    found = _load(folder)
    splits = tuple(found) if isinstance(found, dict) else (_ALL,)
    dataset.check_split("hf", split, splits)
    rows = found[split] if isinstance(found, dict) else found
    image, label = _columns(rows)
    source = SavedRows(
        _undecoded(rows, image, label), folder, image, label, Tolerance(skip_corrupt_records)
    )
    names = tuple(rows.features[label].names)
    return dataset.Dataset(
        name="hf",
        split=split,
        num_examples=len(rows),
        num_classes=len(names),
        class_names=names,
        image_shape=(None, None, 3),
        splits=splits,
        source=source,
    )


def _load(folder: str) -> Any:
    """Returns a `datasets.Dataset`, or a dictionary of them by split.

    Raises:
      ValueError: if the package cannot read the folder, which another version has written.
    """
    # Imported here, as it takes a second.
    import datasets  # noqa: PLC0415

    try:
        return datasets.load_from_disk(folder)
    except Exception as error:  # of many kinds, by the package's version and the damage
        reason = shortened(str(error)) or type(error).__name__
        raise ValueError(
            f"data_dir must be a folder that {_PACKAGE} {datasets.__version__} can read, got "
            f"{reason}"
        ) from error


def _columns(rows: Any) -> tuple[str, str]:
    """Returns the names of the one column of images and the one of labels."""
    import datasets  # noqa: PLC0415

    kinds = (datasets.Image, datasets.ClassLabel)
    found = [
        [name for name, each in rows.features.items() if isinstance(each, kind)] for kind in kinds
    ]
    if [len(names) for names in found] != [1, 1]:
        of = ", ".join(f"{name}: {type(each).__name__}" for name, each in rows.features.items())
        raise ValueError(f"dataset 'hf' must have one image and one class label, got {of}")
    return found[0][0], found[1][0]


def _undecoded(rows: Any, image: str, label: str) -> Any:
    import datasets  # noqa: PLC0415

    return rows.select_columns([image, label]).cast_column(image, datasets.Image(decode=False))
