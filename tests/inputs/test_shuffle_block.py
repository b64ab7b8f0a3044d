"""Order for slow storage: neighbours are read together, and still everything is as promised."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode

tf1 = tf.compat.v1


def orders_of(num_epochs, num_examples, global_batch_size, block):
    """The numbers of some epochs, each int64 [examples_per_epoch]; and the order."""
    order = inputs.Order(num_examples, global_batch_size, 3, shuffle_block=block)
    with tf.Graph().as_default(), tf1.Session() as session:
        epoch = tf1.placeholder(tf.int64, [])
        numbers = order.epoch(epoch)
        return [session.run(numbers, {epoch: each}) for each in range(num_epochs)], order


@pytest.mark.parametrize(
    ("num_examples", "batch", "block"), [(1000, 24, 16), (997, 7, 10), (100, 100, 7), (50, 3, 200)]
)
def test_epoch_with_blocks_shows_each_example_once(num_examples, batch, block):
    """Blocks of any size: an epoch has each example once, and the next one another order."""
    (numbers, following), order = orders_of(2, num_examples, batch, block)
    assert len(set(numbers.tolist())) == len(numbers) == order.examples_per_epoch
    assert numbers.tolist() != following.tolist()


def test_remainder_rotates_with_blocks():
    """Each of 10 examples is left out exactly 3 times in 10 epochs of 7."""
    counts = np.bincount(np.concatenate(orders_of(10, 10, 7, 3)[0]))
    assert counts.tolist() == [7] * 10


def test_window_of_blocks():
    """A window of 5,000 records in blocks of 32 is some 32 requests, not a thousand. Each of 8
    replicas reads blocks of its own: as many runs of neighbours as one replica. Of two neighbours
    in the file, less than one in ten pairs is within ten places.
    """
    [numbers], order = orders_of(1, 5000, 64, 32)
    window = numbers[: order.steps_per_window * 64]
    assert len(window) == 32 * 4 * 8  # blocks of each of 8 streams
    replicas = window.reshape([-1, 8, 8]).swapaxes(0, 1)
    for part, most in ((window, 33), *((each, 5) for each in replicas)):
        assert 1 + np.count_nonzero(np.diff(np.sort(part, axis=None)) != 1) <= most
    places = np.full([5000], 10**6)
    places[numbers] = np.arange(len(numbers))
    apart = np.abs(np.diff(places))
    assert np.mean(apart < 10) < 0.1


def records(folder):
    """A dataset in three files that is not kept in memory."""
    if not folder.exists():
        files.write_examples(folder, [14, 30, 21])
    return inputs.get_dataset("tfrecord", "train", folder)


OPTIONS = {"image_size": 8, "shuffle_block": 4, "seed": 5, "preprocessing": "lenet"}


@pytest.mark.slow
def test_blocks_go_on_at_any_step(tmp_path):
    """From a position within a window on, the batches are those of an uninterrupted run, however
    they are divided.
    """
    dataset = records(tmp_path / "data")
    whole = sessions.train_indices(dataset, num_runs=9, batch_size=12, **OPTIONS)
    for done, cut in ((1, {"batch_size": 12}), (7, {"batch_size": 4, "num_clones": 3})):
        rest = sessions.train_indices(dataset, num_runs=9 - done, position=done, **cut, **OPTIONS)
        assert rest == whole[done:]


@pytest.mark.slow
def test_corrupt_record_is_replaced_in_a_block(tmp_path):
    """A record that does not match its checksum costs nothing but itself."""
    good = records(tmp_path / "data")
    options = OPTIONS | {"batch_size": 12, "num_epochs": 1}
    expected = sessions.train_indices(good, **options)
    path = sorted((tmp_path / "data").glob("*.tfrecord"))[1]
    content = bytearray(path.read_bytes())
    content[60] ^= 1  # in the data of its first record, example 14 of the dataset
    path.write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{path.name}: record 0 .*checksum"):
        sessions.train_indices(records(tmp_path / "data"), **options)
    dataset = inputs.get_dataset("tfrecord", "train", tmp_path / "data", skip_corrupt_records=1)
    steps = sessions.train_indices(dataset, **options)
    assert steps == [[15 if number == 14 else number for number in step] for step in expected]


def test_blocks_reject():
    """A block below 1 is an error."""
    with pytest.raises(ValueError, match="shuffle_block must be at least 1, got 0"):
        inputs.Order(10, 2, shuffle_block=0)
