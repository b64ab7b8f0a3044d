"""The table of datasets, and the two that need no files."""

import dataclasses

import numpy as np
import pytest

from model_deploy import inputs
from model_deploy.inputs.reading import sources

pytestmark = pytest.mark.one_mode


def test_digits_splits_all_of_scikit_learns_digits():
    """Train and test digits are 1,437 and 360 and have each of the 1,797 labels once."""
    train, test = (inputs.get_dataset("digits", split) for split in ("train", "test"))
    assert (train.num_examples, test.num_examples) == (1437, 360)
    labels = np.concatenate([each.source.arrays[1] for each in (train, test)])
    # The counts of the digits in scikit-learn's documentation of the dataset.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_are_enlarged_between_pixel_centres():
    """An enlarged image keeps the mean of the 8 x 8 image and the values of its corners."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 - slow to import

    raw = load_digits()
    first = np.random.RandomState(1797).permutation(1797)[0]
    image = inputs.get_dataset("digits", "train").source.arrays[0][0, :, :, 0]
    assert image.shape == (28, 28)
    small = raw.images[first] * 255 / 16
    np.testing.assert_allclose(
        image[[0, 0, -1, -1], [0, -1, 0, -1]], small[[0, 0, -1, -1], [0, -1, 0, -1]], atol=0.5
    )
    assert image.max() <= 255
    assert abs(image.mean() - small.mean()) < 10


def test_synthetic_is_the_same_every_time():
    """The same arguments make the same images, and the splits differ."""
    options = {"num_examples": 6, "image_size": 5, "channels": 1, "num_classes": 3}
    first, again = (inputs.get_dataset("synthetic", "train", **options) for _ in range(2))
    test = inputs.get_dataset("synthetic", "test", **options)
    images, labels = first.source.arrays
    assert images.shape == (6, 5, 5, 1)
    assert labels.tolist() == [0, 1, 2, 0, 1, 2]
    np.testing.assert_array_equal(images, again.source.arrays[0])
    assert (images != test.source.arrays[0]).any()


@pytest.mark.parametrize("option", ["image_size", "channels", "num_classes", "num_examples"])
def test_synthetic_rejects(option):
    """A size below 1 is an error that names it."""
    with pytest.raises(ValueError, match=f"{option} of dataset 'synthetic' must be .*, got 0"):
        inputs.get_dataset("synthetic", "train", **{option: 0})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: inputs.get_dataset("none", "train"), "name must be one of .*, got 'none'"),
        (
            lambda: inputs.get_dataset("digits", "dev"),
            "split of dataset 'digits' must be one of train, test, got 'dev'",
        ),
        (lambda: inputs.register_dataset("digits"), "name must be new, got 'digits'"),
        (lambda: changed(split="dev"), "must be one of train, test, got 'dev'"),
        (lambda: changed(num_examples=0), "num_examples .* at least 1, got 0"),
        (lambda: changed(num_classes=2), "must name 2 classes, got 10"),
    ],
)
def test_rejects(call, message):
    """An unknown dataset or split is an error that lists the known ones; a dataset cannot replace
    another one. One whose facts do not fit together cannot be made.
    """
    with pytest.raises(ValueError, match=message):
        call()


def changed(**facts):
    """A good dataset with some facts changed."""
    return dataclasses.replace(inputs.get_dataset("digits", "train"), **facts)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros([2, 3, 3, 1]), np.zeros([2], int), r"got float64 \[2, 3, 3, 1\]"),
        (np.zeros([2, 3, 3], np.uint8), np.zeros([2], int), r"got uint8 \[2, 3, 3\]"),
        (np.zeros([2, 3, 3, 1], np.uint8), np.zeros([3], int), r"got int64 \[3\]"),
        (np.zeros([2, 3, 3, 1], np.uint8), np.zeros([2]), r"got float64 \[2\]"),
    ],
)
def test_array_source_rejects(images, labels, message):
    """Arrays that are not images and one label each are an error."""
    with pytest.raises(ValueError, match=message):
        sources.ArraySource(lambda: (images, labels)).arrays  # noqa: B018 - reads them
