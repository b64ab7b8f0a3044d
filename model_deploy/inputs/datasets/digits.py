"""The embedded dataset: 1,797 handwritten digits that scikit-learn ships.

The images are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin,
C. Kaynak, UCI Machine Learning Repository, 1998): 8 x 8 values from 0 to 16.  Here
each value becomes a byte (times 255/16, rounded) and each image is enlarged to
28 x 28, the size of MNIST, by bilinear interpolation between pixel centres.

The split is fixed: the examples are shuffled once by a permutation of NumPy's `RandomState(1797)`,
whose stream NumPy keeps stable; the first 1,437 are "train", the other 360 "test".
"""

import importlib.util
import os
import pathlib

import numpy as np

from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.reading import sources

NUM_TRAIN = 1437
_IMAGE_SIZE = 28
_SPLIT_SEED = 1797


def digits(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The embedded digits: 1,437 train and 360 test images, uint8 [28, 28, 1], of 0 to 9."""
    del data_dir, skip_corrupt_records  # scikit-learn contains the images
    splits = ("train", "test")
    dataset.check_split("digits", split, splits)
    return dataset.Dataset(
        name="digits",
        split=split,
        num_examples=NUM_TRAIN if split == "train" else 1797 - NUM_TRAIN,
        num_classes=10,
        class_names=tuple(str(digit) for digit in range(10)),
        image_shape=(_IMAGE_SIZE, _IMAGE_SIZE, 1),
        splits=splits,
        source=sources.ArraySource(lambda: _read(split)),
    )


def _read(split: str) -> tuple[np.ndarray, np.ndarray]:
    originals, labels = _read_originals()
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(labels))
    chosen = order[:NUM_TRAIN] if split == "train" else order[NUM_TRAIN:]
    weights = _bilinear(originals.shape[1], _IMAGE_SIZE)
    enlarged = weights @ originals[chosen] @ weights.T
    images = np.round(enlarged * (255 / 16)).astype(np.uint8)
    return images[..., np.newaxis], labels[chosen]


def _read_originals() -> tuple[np.ndarray, np.ndarray]:
    """Reads images [1797, 8, 8] with values from 0 to 16, and labels [1797]."""
    found = importlib.util.find_spec("sklearn")
    if found is not None and found.origin is not None:
        path = pathlib.Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
        if path.is_file():
            # The file is read without importing scikit-learn, which takes a second.
            table = np.loadtxt(path, delimiter=",")
            return table[:, :-1].reshape([-1, 8, 8]), table[:, -1].astype(np.int64)
    from sklearn.datasets import load_digits  # noqa: PLC0415

    raw = load_digits()
    return raw.images, raw.target


def _bilinear(old: int, new: int) -> np.ndarray:
    """Returns the [new, old] matrix of interpolation between the centres of `old` pixels."""
    centres = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.maximum(0, 1 - np.abs(centres[:, np.newaxis] - np.arange(old)))
