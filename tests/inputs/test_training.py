"""Training batches: who gets which example, and where a run goes on."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from tests.inputs import sessions

tf1 = tf.compat.v1


def synthetic(num_examples, **options):
    """A small dataset of 4 x 4 images."""
    return inputs.get_dataset(
        "synthetic", "train", num_examples=num_examples, image_size=4, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize(("num_clones", "num_shards"), [(1, 1), (4, 1), (3, 2), (2, 3)])
def test_epoch_shows_each_example_once(num_clones, num_shards):
    """One epoch over all clones and replicas shows each example once, but for the remainder."""
    dataset = synthetic(num_examples=101)
    counts = collections.Counter()
    for shard in range(num_shards):
        steps = sessions.train_indices(
            dataset,
            batch_size=4,
            num_clones=num_clones,
            num_shards=num_shards,
            shard_index=shard,
            num_epochs=1,
        )
        assert len(steps) == 101 // (4 * num_clones * num_shards)
        counts.update(index for step in steps for index in step)
    used = 101 - 101 % (4 * num_clones * num_shards)
    assert len(counts) == used
    assert set(counts.values()) == {1}


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
    """The same seed gives the same order; other seeds and other epochs give others."""
    dataset = synthetic(num_examples=32)
    first = sessions.train_indices(dataset, batch_size=32, num_epochs=2, seed=1)
    again = sessions.train_indices(dataset, batch_size=32, num_epochs=2, seed=1)
    other = sessions.train_indices(dataset, batch_size=32, num_epochs=2, seed=2)
    assert first == again
    orders = [tuple(step) for step in first + other]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(32)) for order in orders)


def test_images_and_labels_belong_together():
    """Each batch has the images and labels of the examples that it numbers."""
    dataset = synthetic(num_examples=20)
    images, labels = dataset.source.arrays
    for (batch,) in sessions.train_values(dataset, batch_size=5, num_epochs=1):
        np.testing.assert_array_equal(batch["label"], labels[batch["index"]])
        expected = (images[batch["index"]].astype(np.float32) - 128) / 128
        np.testing.assert_array_equal(batch["image"], expected)


@pytest.mark.slow
@pytest.mark.parametrize(("num_clones", "num_shards"), [(4, 1), (2, 2), (1, 4)])
def test_clones_and_replicas_cut_one_sequence(num_clones, num_shards):
    """Clones and replicas get consecutive pieces of what one clone would get in one batch."""
    dataset = synthetic(num_examples=50)
    whole = sessions.train_indices(dataset, batch_size=16, num_epochs=2)
    cut = [[] for _ in whole]
    for shard in range(num_shards):
        steps = sessions.train_indices(
            dataset,
            batch_size=16 // (num_clones * num_shards),
            num_clones=num_clones,
            num_shards=num_shards,
            shard_index=shard,
            num_epochs=2,
        )
        for whole_step, step in zip(cut, steps, strict=True):
            whole_step.extend(step)
    assert cut == whole


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(4,), (3, 1), (1, 2, 1)])
def test_unequal_replicas_cut_one_sequence(counts):
    """From any position on they get consecutive pieces of what one clone would get in one batch."""
    options = {"position": 2, "num_epochs": 2}
    whole = sessions.train_indices(synthetic(num_examples=50), batch_size=12, **options)
    cut = [[] for _ in whole]
    for i, count in enumerate(counts):
        steps = sessions.train_indices(
            synthetic(num_examples=50),
            batch_size=3,
            num_clones=count,
            first_clone=sum(counts[:i]),
            global_clones=sum(counts),
            **options,
        )
        for whole_step, step in zip(cut, steps, strict=True):
            whole_step.extend(step)
    assert cut == whole


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
    ],
)
def test_clones_of_unequal_replicas_reject(options, message):
    """Clones that are not among those of all replicas are refused, and batches that are counted."""
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        inputs.train_batches(synthetic(50), preprocessing="lenet", batch_size=1, **options)


@pytest.mark.slow
def test_fetching_one_clone_moves_all():
    """A run that fetches the batch of one clone only moves the others on by a step too."""
    dataset = synthetic(num_examples=40)
    with tf.Graph().as_default(), tf1.Session() as session:
        batches = inputs.train_batches(
            dataset, batch_size=4, num_clones=2, preprocessing="lenet", include_index=True
        )
        first, second = next(batches)["index"], next(batches)["index"]
        session.run(tf1.global_variables_initializer())
        session.run(batches.initializer)
        session.run(first)
        seen = session.run([first, second])
    expected = sessions.train_indices(dataset, num_runs=2, batch_size=4, num_clones=2)[1]
    assert np.concatenate(seen).tolist() == expected


@pytest.mark.slow
def test_initializer_goes_to_the_given_position():
    """With `position`, the pipeline starts as if that many steps had been done."""
    dataset = synthetic(num_examples=42)
    options = {"batch_size": 4, "num_clones": 2}
    whole = sessions.train_indices(dataset, num_runs=20, **options)
    for done in (0, 1, 5, 13):
        rest = sessions.train_indices(dataset, num_runs=20 - done, position=done, **options)
        assert rest == whole[done:]


@pytest.mark.slow
def test_position_may_be_the_global_step():
    """A pipeline over the global step starts where the variable says and counts nothing itself."""
    dataset = synthetic(num_examples=12)
    whole = sessions.train_indices(dataset, num_runs=6, batch_size=4)

    def build():
        step = tf1.train.get_or_create_global_step()
        batches = inputs.train_batches(
            dataset, batch_size=4, position=step, preprocessing="lenet", include_index=True
        )
        assert tf1.global_variables() == [step]
        tf1.add_to_collection("start", step.assign(2))
        return next(batches)["index"]

    with tf.Graph().as_default(), tf1.Session() as session:
        index = build()
        session.run(tf1.global_variables_initializer())
        session.run(tf1.get_collection("start"))
        session.run(tf1.tables_initializer())
        assert [session.run(index).tolist() for _ in range(4)] == whole[2:]


def test_own_position_counts_the_steps_of_its_shard():
    """The saved position has one entry per replica and each counts its own steps."""
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
            session.run(image)
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


def test_wait_secs_is_a_short_time():
    """Fetched with a step, `wait_secs` is the non-negative time that it waited."""

    def build():
        batches = inputs.train_batches(
            synthetic(num_examples=8), batch_size=2, num_epochs=1, preprocessing="lenet"
        )
        return next(batches)["label"], batches.wait_secs

    waits = [wait for _, wait in sessions.collect(build)]
    assert len(waits) == 4
    assert all(0 <= wait < 60 for wait in waits)


def test_batch_is_prefetched_onto_the_device_of_its_clone():
    """With a GPU as its clone's device, the iterator of that clone is there."""
    with tf.Graph().as_default():
        batches = inputs.train_batches(
            synthetic(num_examples=8),
            batch_size=2,
            num_clones=2,
            clone_devices=["/device:GPU:0", "/device:GPU:1"],
            preprocessing="lenet",
        )
        next(batches)
        graph = tf1.get_default_graph()
        devices = [op.device for op in graph.get_operations() if op.type == "IteratorGetNext"]
    assert devices == ["/device:GPU:0", "/device:GPU:1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"num_clones": -1}, "num_clones must be at least 1, got -1"),
        ({"num_shards": 0}, "num_shards must be at least 1, got 0"),
        (
            {"num_shards": 2, "shard_index": 2},
            r"shard_index must be from 0 to num_shards - 1 = 1, got 2",
        ),
        ({"num_epochs": 0}, "num_epochs must be at least 1, got 0"),
        ({"num_clones": 3}, r"num_clones \* num_shards must be at most the 10 examples .*, got 12"),
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
    options = {"batch_size": 4, "preprocessing": "lenet"} | options
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        inputs.train_batches(synthetic(num_examples=10), **options)
