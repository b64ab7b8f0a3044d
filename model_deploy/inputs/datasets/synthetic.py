"""The dataset `synthetic`: generated images of any size, for tests and benchmarks.

Each class has a colour and each image noise around it, so that a network can learn the classes; the
same arguments always generate the same images.
"""

import os

import numpy as np

from model_deploy.checks import check_at_least
from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.reading import sources

_SPLIT_SEEDS = {"train": 0, "test": 1}


def synthetic(
    split: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    image_size: int = 32,
    channels: int = 3,
    num_classes: int = 10,
    num_examples: int = 1024,
    skip_corrupt_records: int = 0,
) -> dataset.Dataset:
    """The synthetic dataset: images, uint8 [image_size, image_size, channels]; train and test.

    Raises:
      ValueError: if a size or number is below 1.
    """
    del data_dir, skip_corrupt_records  # there are no files
    splits = tuple(_SPLIT_SEEDS)
    dataset.check_split("synthetic", split, splits)
    sizes = {"image_size": image_size, "channels": channels}
    sizes |= {"num_classes": num_classes, "num_examples": num_examples}
    for name, size in sizes.items():
        check_at_least(f"{name} of dataset 'synthetic'", size, 1)
    shape = (image_size, image_size, channels)
    return dataset.Dataset(
        name="synthetic",
        split=split,
        num_examples=num_examples,
        num_classes=num_classes,
        class_names=tuple(f"class_{label}" for label in range(num_classes)),
        image_shape=shape,
        splits=splits,
        source=sources.ArraySource(lambda: _make(split, num_examples, num_classes, shape)),
    )


def _make(
    split: str, num_examples: int, num_classes: int, shape: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    # A separate generator for colours, which must be the same in both splits.
    colours = np.random.RandomState(num_classes).randint(32, 192, [num_classes, 1, 1, shape[-1]])
    labels = np.arange(num_examples) % num_classes
    noise = np.random.RandomState(_SPLIT_SEEDS[split]).randint(
        0, 64, [num_examples, *shape], dtype=np.uint8
    )
    return noise + colours[labels].astype(np.uint8), labels
