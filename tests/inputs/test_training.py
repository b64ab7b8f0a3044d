"""Training batches: who gets which example, and where a run goes on."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from tests.inputs import sessions

# With `--v1` test_staging.py and the runs of tests/training have positions and batches.
pytestmark = pytest.mark.one_mode

tf1 = tf.compat.v1


def synthetic(num_examples):
    """A small dataset of 4 x 4 images."""
    return inputs.get_dataset("synthetic", "train", num_examples=num_examples, image_size=4)


@pytest.mark.parametrize("shuffle", [True, False])
def test_remainder_rotates(shuffle):
    """Each of 10 examples is left out exactly 3 times in 10 epochs of 7; without shuffling they
    come as they are in the dataset.
    """
    steps = sessions.train_indices(
        synthetic(num_examples=10), batch_size=7, num_epochs=10, shuffle=shuffle
    )
    counts = collections.Counter(index for step in steps for index in step)
    assert len(steps) == 10
    assert counts == dict.fromkeys(range(10), 7)
    assert (steps[0] == [*range(7)]) is not shuffle


@pytest.mark.slow
def test_order_depends_on_seed_and_epoch():
    """Other seeds and other epochs give other orders, each of all examples; each batch has the
    images and labels of the examples that it numbers.
    """
    dataset = synthetic(num_examples=32)
    images, labels = dataset.source.arrays
    options = {"batch_size": 32, "num_epochs": 2}
    batches = [
        batch for seed in (1, 2) for [batch] in sessions.train_values(dataset, seed=seed, **options)
    ]
    orders = [tuple(batch["index"]) for batch in batches]
    assert len(set(orders)) == 4
    for batch, order in zip(batches, orders, strict=True):
        assert sorted(order) == list(range(32))
        np.testing.assert_array_equal(batch["label"], labels[batch["index"]])
        expected = (images[batch["index"]].astype(np.float32) - 128) / 128
        np.testing.assert_array_equal(batch["image"], expected)


@pytest.fixture(scope="module")
def whole():
    """The steps of one clone in two epochs of 50 examples, each of them once but for 2."""
    steps = sessions.train_indices(synthetic(num_examples=50), batch_size=12, num_epochs=2)
    assert [len({*np.ravel(steps[first : first + 4])}) for first in (0, 4)] == [48, 48]
    return steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("counts", "replicas"),
    [
        ((4,), [{}]),
        ((2, 2), [{"num_shards": 2, "shard_index": shard} for shard in range(2)]),
        ((1, 2, 1), [{"global_clones": 4, "first_clone": first} for first in (0, 1, 3)]),
    ],
)
def test_clones_and_replicas_cut_one_sequence(counts, replicas, whole):
    """From any position on, clones and replicas, equal or not, get consecutive pieces of what one
    clone would get in one batch.
    """
    options = {"batch_size": 3, "position": 2, "num_epochs": 2}
    parts = [
        sessions.train_indices(synthetic(num_examples=50), num_clones=count, **each, **options)
        for count, each in zip(counts, replicas, strict=True)
    ]
    assert [[*itertools.chain(*step)] for step in zip(*parts, strict=True)] == whole[2:]


@pytest.mark.slow
def test_position_may_be_the_global_step(whole):
    """A pipeline over the global step starts where the variable says, past an epoch too, and counts
    nothing itself. A run that fetches the batch of one clone only moves the others on by a step.
    """
    options = {"preprocessing": "lenet", "include_index": True, "batch_size": 6, "num_clones": 2}
    with tf.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        batches = inputs.train_batches(synthetic(num_examples=50), position=step, **options)
        assert tf1.global_variables() == [step]
        clones = [next(batches)["index"] for _ in range(2)]
        session.run(step.assign(5))
        session.run(tf1.tables_initializer())
        assert session.run(clones[0]).tolist() == whole[5][:6]
        assert np.concatenate(session.run(clones)).tolist() == whole[6]


def test_own_position_counts_the_steps_of_its_shard():
    """The saved position has one entry per replica and each counts its own steps. Fetched with a
    step, `wait_secs` is the non-negative time that it waited.
    """
    with tf.Graph().as_default(), tf1.Session() as session:
        batches = inputs.train_batches(
            synthetic(num_examples=12),
            batch_size=2,
            num_shards=3,
            shard_index=1,
            num_epochs=2,
            preprocessing="lenet",
        )
        image = next(batches)["image"]
        session.run(tf1.global_variables_initializer())
        session.run(tf1.tables_initializer())
        for _ in range(4):
            _, waited = session.run([image, batches.wait_secs])
            assert 0 <= waited < 60
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(image)
        (variable,) = tf1.global_variables()
        assert session.run(variable).tolist() == [0, 4, 0]
        assert session.run(batches.position) == 4


def test_graphs():
    """Each training pipeline in a graph has a position of its own, and one copy of the images,
    whatever the number of clones; there is one batch for each clone, and no other.
    """
    options = {"batch_size": 2, "num_clones": 4, "preprocessing": "lenet"}
    with tf.Graph().as_default() as graph:
        for _ in range(2):
            batches = inputs.train_batches(synthetic(num_examples=8), **options)
        names = [variable.op.name for variable in tf1.global_variables()]
        ops = [op for op in graph.get_operations() if op.type == "PyFunc"]
        for _ in range(4):
            next(batches)
        with pytest.raises(ValueError, match=r"number of calls of next\(\), got 4 and one"):
            next(batches)
    assert names == ["train_batches/position", "train_batches_1/position"]
    assert [op.outputs[0].shape.as_list() for op in ops] == 2 * [[8, 4, 4, 3], [8]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"first_clone": 1}, "first_clone must be 0 without global_clones, got 1"),
        ({"global_clones": 4, "num_shards": 2}, "num_shards must be 1 with global_clones, got 2"),
        (
            {"global_clones": 4, "num_clones": 3, "first_clone": 2},
            "first_clone must be from 0 to global_clones - num_clones = 4 - 3, got 2",
        ),
        ({"global_clones": 4}, "position must be the global step with global_clones, got None"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"num_clones": -1}, "num_clones must be at least 1, got -1"),
        ({"num_shards": 0}, "num_shards must be at least 1, got 0"),
        (
            {"num_shards": 2, "shard_index": 2},
            r"shard_index must be from 0 to num_shards - 1 = 1, got 2",
        ),
        ({"num_epochs": 0}, "num_epochs must be at least 1, got 0"),
        ({"num_clones": 6}, r"num_clones \* num_shards must be at most the 10 examples .*, got 12"),
        ({"seed": 2**63}, "seed must be an integer of 64 bits, got"),
        ({"num_readers": 0}, "num_readers must be at least 1, got 0"),
        ({"image_size": 0}, "image_size must be at least 1, got 0"),
        ({"num_preprocessing_threads": -2}, "num_preprocessing_threads must be at least 1, got -2"),
        (
            {"num_clones": 2, "clone_devices": ["/device:CPU:0"]},
            "clone_devices must be 2, one per clone, got 1",
        ),
        ({"preprocessing": "none"}, "preprocessing name must be one of .*, got 'none'"),
    ],
)
def test_train_batches_rejects(options, message):
    """A pipeline that cannot be built says which value it got."""
    options = {"batch_size": 2, "preprocessing": "lenet"} | options
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        inputs.train_batches(synthetic(num_examples=10), **options)
