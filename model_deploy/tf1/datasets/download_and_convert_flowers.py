"""`download_and_convert_flowers`: TensorFlow's photographs of flowers as TFRecords."""

import dataclasses
import os
import random
from collections.abc import Sequence

from model_deploy import inputs
from model_deploy.tf1.datasets import dataset_utils, flowers
from model_deploy.tf1.datasets.converting import convert_splits

DATA_URL = "https://storage.googleapis.com/download.tensorflow.org/example_images/flower_photos.tgz"
NUM_VALIDATION = flowers.SPLITS_TO_SIZES["validation"]
_NUM_SHARDS = 5
_SEED = 0
_SPLITS = ("train", "validation")


class _Part:
    """Some of the images of a source.

    Args:
      source: all of them.
      indices: which ones.
    """

    def __init__(self, source: inputs.EncodedSource, indices: Sequence[int]) -> None:
        self.tolerance = source.tolerance
        self._source = source
        self._indices = indices

    def read(self, index: int) -> tuple[bytes, int]:
        return self._source.read(self._indices[index])

    def corrupt(self, index: int, reason: str) -> inputs.CorruptRecordError:
        return self._source.corrupt(self._indices[index], reason)


def run(dataset_dir: str) -> None:
    """Writes `flowers_train_00000-of-00005.tfrecord`, the others, and `labels.txt`.

    350 photographs, drawn once and for all, are for the validation; not the same ones as in
    TF-Slim, whose choice depended on the order of files on a disk.

    Does nothing if all files are there.

    Args:
      dataset_dir: the folder.

    Raises:
      ValueError: if the download fails, or is not what it was.
      OSError: if the folder cannot be written.
    """
    targets = [
        (
            split,
            [
                f"flowers_{split}_{shard:05d}-of-{_NUM_SHARDS:05d}.tfrecord"
                for shard in range(_NUM_SHARDS)
            ],
        )
        for split in _SPLITS
    ]
    convert_splits("flowers", dataset_dir, targets, _read)


def _read(folder: str) -> list[inputs.Dataset]:
    dataset_utils.download_and_uncompress_tarball(DATA_URL, folder)
    photographs = os.path.join(folder, "flower_photos")
    whole = inputs.get_dataset("folder", "train", photographs, test_percent=0)
    assert not isinstance(whole.source, inputs.ArraySource)
    order = list(range(whole.num_examples))
    random.Random(_SEED).shuffle(order)
    parts = order[NUM_VALIDATION:], order[:NUM_VALIDATION]
    return [
        dataclasses.replace(
            whole,
            name="flowers",
            split=split,
            splits=_SPLITS,
            num_examples=len(part),
            source=_Part(whole.source, part),
        )
        for split, part in zip(_SPLITS, parts, strict=True)
    ]
