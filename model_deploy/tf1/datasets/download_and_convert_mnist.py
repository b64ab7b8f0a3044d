"""`download_and_convert_mnist`: MNIST from a mirror of its page as TFRecords."""

import dataclasses

from model_deploy import inputs
from model_deploy.tf1.datasets.converting import convert_splits

_SPLITS = ("train", "test")
_CLASS_NAMES = (
    *("zero", "one", "two", "three", "four"),
    *("five", "six", "seven", "eight", "nine"),
)


def run(dataset_dir: str) -> None:
    """Writes `mnist_train.tfrecord`, `mnist_test.tfrecord` and `labels.txt`.

    Does nothing if all files are there.

    Args:
      dataset_dir: the folder.

    Raises:
      ValueError: if a download fails, or has another SHA-256 sum than the official one.
      OSError: if the folder cannot be written.
    """

    def read(folder: str) -> list[inputs.Dataset]:
        inputs.download_dataset("mnist", folder)
        found = [inputs.get_dataset("mnist", split, folder) for split in _SPLITS]
        return [dataclasses.replace(dataset, class_names=_CLASS_NAMES) for dataset in found]

    targets = [(split, [f"mnist_{split}.tfrecord"]) for split in _SPLITS]
    convert_splits("mnist", dataset_dir, targets, read)
