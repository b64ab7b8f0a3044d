"""`download_and_convert_cifar10`: CIFAR-10 from its page as TFRecords."""

from model_deploy import inputs
from model_deploy.tf1.datasets import cifar10
from model_deploy.tf1.datasets.converting import convert_splits


def run(dataset_dir: str) -> None:
    """Writes `cifar10_train.tfrecord`, `cifar10_test.tfrecord` and `labels.txt`.

    Reads the official binary version: the pickled one, which TF-Slim took, runs what is in it.
    Does nothing if all files are there.

    Args:
      dataset_dir: the folder.

    Raises:
      ValueError: if the download fails, or has another SHA-256 sum than the official one.
      OSError: if the folder cannot be written.
    """

    def read(folder: str) -> list[inputs.Dataset]:
        inputs.download_dataset("cifar10", folder)
        return [inputs.get_dataset("cifar10", split, folder) for split in cifar10.SPLITS_TO_SIZES]

    targets = [(split, [f"cifar10_{split}.tfrecord"]) for split in cifar10.SPLITS_TO_SIZES]
    convert_splits("cifar10", dataset_dir, targets, read)
