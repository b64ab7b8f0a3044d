"""`tensorflow.examples.tutorials.mnist.input_data` reads local files as it did."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1 import names
from tests.inputs import files

pytestmark = pytest.mark.one_mode

input_data = names.find("tensorflow.examples.tutorials.mnist.input_data")


def _images(count=6):
    """Images whose value is their number, and labels."""
    numbers = np.arange(count, dtype=np.uint8)
    return np.broadcast_to(numbers[:, None, None, None], [count, 2, 3, 1]).copy(), numbers % 10


@pytest.mark.parametrize("compress", [True, False])
def test_reads_local_files(compress, tmp_path):
    """The first images are for validation; values go from 0 to 1, images are vectors."""
    images, labels = files.write_mnist(tmp_path, count=12, compress=compress)
    found = input_data.read_data_sets(str(tmp_path), validation_size=5)
    sizes = found.train.num_examples, found.validation.num_examples, found.test.num_examples
    assert sizes == (7, 5, 12)
    flat = images.reshape([12, 784]) / np.float32(255)
    np.testing.assert_array_equal(found.validation.images, flat[:5])
    np.testing.assert_array_equal(found.train.images, flat[5:])
    np.testing.assert_array_equal(found.train.labels, labels[5:])
    assert found.train.images.dtype == np.float32


def test_kinds_of_images_and_labels(tmp_path):
    """Labels may be vectors, images may stay bytes and keep their shape."""
    images, labels = files.write_mnist(tmp_path, count=12)
    found = input_data.read_data_sets(
        str(tmp_path), one_hot=True, dtype=tf.uint8, reshape=False, validation_size=0
    )
    np.testing.assert_array_equal(found.train.images, images[..., np.newaxis])
    np.testing.assert_array_equal(found.train.labels, np.eye(10)[labels])


def test_batches_of_an_epoch_have_each_image_once():
    """Batches go on over the end of an epoch; each epoch has all images, in another order."""
    images, labels = _images(7)
    data = input_data.DataSet(images, labels, dtype=tf.uint8, seed=3)
    batches = [data.next_batch(3) for _ in range(14)]
    for pixels, numbers in batches:
        assert pixels.shape == (3, 6)
        np.testing.assert_array_equal(pixels[:, 0], numbers)
    seen = np.concatenate([numbers for _, numbers in batches]).reshape([6, 7])
    for epoch in seen:
        assert sorted(epoch.tolist()) == list(range(7))
    assert len({tuple(epoch.tolist()) for epoch in seen}) > 1
    assert data.epochs_completed == 5
    data.next_batch(1)
    assert data.epochs_completed == 6


def test_order_of_batches():
    """Without shuffling images come in their order, again and again; the same seed gives the same
    batches. A batch may be larger than the data, and then has some images several times.
    """
    data = input_data.DataSet(*_images(4), dtype=tf.uint8)
    seen = [data.next_batch(3, shuffle=False)[1].tolist() for _ in range(4)]
    assert seen == [[0, 1, 2], [3, 0, 1], [2, 3, 0], [1, 2, 3]]
    first, again, other = (
        input_data.DataSet(*_images(40), seed=seed).next_batch(40)[1].tolist() for seed in (1, 1, 2)
    )
    assert first == again != other
    data = input_data.DataSet(*_images(4), dtype=tf.uint8)
    assert sorted(np.bincount(data.next_batch(11)[1])) == [2, 3, 3, 3]
    assert data.epochs_completed == 2


@pytest.mark.parametrize(("one_hot", "label"), [(False, 0), (True, [1] + [0] * 9)])
def test_fake_data(one_hot, label, tmp_path):
    """Made-up data need no files."""
    found = input_data.read_data_sets(str(tmp_path), fake_data=True, one_hot=one_hot)
    images, labels = found.train.next_batch(2, fake_data=True)
    assert images == [[1] * 784] * 2
    assert labels == [label] * 2
    assert found.train.num_examples == 10_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda folder: input_data.read_data_sets(folder, validation_size=13),
            "validation_size must be from 0 to 12, got 13",
        ),
        (
            lambda _: input_data.DataSet(*_images(), dtype=tf.float64),
            "dtype must be uint8 or float32, got float64",
        ),
        (
            lambda _: input_data.DataSet(_images()[0], _images()[1][1:]),
            "labels must be 6, one per image, got 5",
        ),
        (
            lambda _: input_data.DataSet(*_images(0)).next_batch(7),
            "batch_size must be 0 of a data set without images, got 7",
        ),
    ],
)
def test_rejects(call, message, tmp_path):
    """What does not fit is an error that names the value."""
    files.write_mnist(tmp_path, count=12)
    with pytest.raises(ValueError, match=message):
        call(str(tmp_path))
