"""`tensorflow.examples.tutorials.mnist.input_data`: MNIST as tutorials of TensorFlow 1 read it."""

import os
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.inputs import download_dataset, read_idx

_NUM_CLASSES = 10
PREFIXES = ("train", "t10k")


class DataSet:
    """Images and labels in memory, given out batch by batch.

    Args:
      images: uint8 `[n, rows, columns, 1]`.
      labels: uint8 `[n]`, or float `[n, 10]`.
      fake_data: give the same made-up image and label always, to try a program.
      one_hot: labels of `fake_data` as vectors.
      dtype: `tf.float32` scales images to [0, 1]; `tf.uint8` keeps 0 to 255.
      reshape: make a vector of each image.
      seed: chooses the order; by default it differs from run to run.

    Raises:
      ValueError: for another dtype, or as many labels as images are not given.
    """

    def __init__(  # noqa: PLR0917 - the order of the arguments is the tutorials'
        self,
        images: np.ndarray,
        labels: np.ndarray,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = tf.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise ValueError(f"dtype must be uint8 or float32, got {dtype.name}")
        self._random = np.random.RandomState(seed)
        self._fake = None
        if fake_data:
            label = [1] + [0] * (_NUM_CLASSES - 1) if one_hot else 0
            self._fake = ([1] * 784, label)
            images, labels = np.zeros([10_000, 1]), np.zeros([10_000])
        elif len(images) != len(labels):
            raise ValueError(f"labels must be {len(images)}, one per image, got {len(labels)}")
        elif reshape:
            images = images.reshape([len(images), int(np.prod(images.shape[1:]))])
        if dtype == tf.float32:
            images = images.astype(np.float32) / np.float32(255)
        self._images, self._labels = images, labels
        self._epochs_completed = 0
        self._index = 0
        self._order = np.arange(len(images))

    @property
    def images(self) -> np.ndarray:
        """All images, `[n, 784]`, or `[n, 28, 28, 1]`, in the order of this epoch."""
        return self._images[self._order]

    @property
    def labels(self) -> np.ndarray:
        """All labels, `[n]` or `[n, 10]`, in the order of this epoch."""
        return self._labels[self._order]

    @property
    def num_examples(self) -> int:
        """Number of images."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How often all images were given out."""
        return self._epochs_completed

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """The next images and labels; one batch may have the end of an epoch and the next start.

        Args:
          batch_size: how many.
          fake_data: whether to give made-up ones, if the data set is of such.
          shuffle: whether each epoch has an order of its own.

        Raises:
          ValueError: if there are no images.
        """
        if fake_data and self._fake is not None:
            image, label = self._fake
            return [image] * batch_size, [label] * batch_size
        if shuffle and self._epochs_completed == 0 and self._index == 0:
            self._random.shuffle(self._order)
        if batch_size and not len(self._order):
            raise ValueError(f"batch_size must be 0 of a data set without images, got {batch_size}")
        taken, missing = [], batch_size
        while True:
            taken.append(self._order[self._index : self._index + missing])
            self._index += len(taken[-1])
            missing -= len(taken[-1])
            if not missing:
                break
            self._epochs_completed += 1
            self._order = self._order.copy()
            if shuffle:
                self._random.shuffle(self._order)
            self._index = 0
        places = np.concatenate(taken)
        return self._images[places], self._labels[places]


class Datasets(NamedTuple):
    """The three splits."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(  # noqa: PLR0917 - as above
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = tf.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Reads MNIST from a folder, after a download where its files are not there.

    Args:
      train_dir: the folder, with `train-images-idx3-ubyte.gz` and the others.
      fake_data: give made-up images and read nothing.
      one_hot: labels as vectors of 10.
      dtype: see `DataSet`.
      reshape: see `DataSet`.
      validation_size: how many of the training images are for validation, the first ones.
      seed: see `DataSet`.
      source_url: folder of the files to download; by default a mirror of the official ones.

    Raises:
      ValueError: if a file cannot be read or downloaded, or there are too few images.
    """
    settings = {"dtype": dtype, "reshape": reshape, "seed": seed}
    if fake_data:
        none = np.zeros([0, 28, 28, 1]), np.zeros([0])
        fake = [DataSet(*none, fake_data=True, one_hot=one_hot, **settings) for _ in range(3)]
        return Datasets(*fake)
    images, labels = {}, {}
    for prefix in PREFIXES:
        paths = paths_of(train_dir, prefix)
        if paths is None:
            download_dataset("mnist", train_dir, base_url=source_url)
            paths = paths_of(train_dir, prefix)
        assert paths is not None
        images[prefix] = read_idx(paths[0], (28, 28))[..., np.newaxis]
        labels[prefix] = read_idx(paths[1], ())
        if one_hot:
            labels[prefix] = np.eye(_NUM_CLASSES)[labels[prefix]]
    count = len(images["train"])
    if not 0 <= validation_size <= count:
        raise ValueError(f"validation_size must be from 0 to {count}, got {validation_size}")
    parts = [
        (images["train"][validation_size:], labels["train"][validation_size:]),
        (images["train"][:validation_size], labels["train"][:validation_size]),
        (images["t10k"], labels["t10k"]),
    ]
    return Datasets(*(DataSet(*part, **settings) for part in parts))


def paths_of(folder: str, prefix: str) -> tuple[str, str] | None:
    """The files of images and labels of a split, compressed or not; None unless both are there.

    Args:
      folder: where they are.
      prefix: one of `PREFIXES`.
    """
    found = []
    for kind in ("images-idx3", "labels-idx1"):
        path = os.path.join(folder, f"{prefix}-{kind}-ubyte")
        found.append(next((p for p in (f"{path}.gz", path) if os.path.exists(p)), None))
    if found[0] is None or found[1] is None:
        return None
    return found[0], found[1]
