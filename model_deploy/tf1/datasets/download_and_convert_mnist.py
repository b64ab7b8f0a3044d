"""`download_and_convert_mnist`: MNIST from a mirror of its page as TFRecords."""

import dataclasses

from absl import logging

from model_deploy import inputs
from model_deploy.tf1 import input_data
from model_deploy.tf1.datasets.converting import convert_splits

_SPLITS = ("train", "test")
_CLASS_NAMES = (
    *("zero", "one", "two", "three", "four"),
    *("five", "six", "seven", "eight", "nine"),
)


def run(dataset_dir: str) -> None:
    """Writes `mnist_train.tfrecord`, `mnist_test.tfrecord` and `labels.txt`.

    Does nothing if all files are there.  Where the folder has the four files that MNIST is made of,
    compressed or not, they are taken as they are: those of Fashion-MNIST and the like have the same
    names, and other sums.

    Args:
      dataset_dir: the folder.

    Raises:
      ValueError: if a download fails, or has another SHA-256 sum than the official one.
      OSError: if the folder cannot be written.
    """

    def read(folder: str) -> list[inputs.Dataset]:
        if all(input_data.paths_of(dataset_dir, prefix) for prefix in input_data.PREFIXES):
            logging.info("%s has files of MNIST's names, which are taken as they are", dataset_dir)
            folder = dataset_dir
        else:
            inputs.download_dataset("mnist", folder)
        found = [inputs.get_dataset("mnist", split, folder) for split in _SPLITS]
        return [dataclasses.replace(dataset, class_names=_CLASS_NAMES) for dataset in found]

    targets = [(split, [f"mnist_{split}.tfrecord"]) for split in _SPLITS]
    convert_splits("mnist", dataset_dir, targets, read)
