"""`tf.contrib.data`: what `tf.data` has under other names, and what it does not have."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib import contrib_module

pytestmark = pytest.mark.one_mode

data = contrib_module("tensorflow.contrib.data")


def _all(dataset):
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        try:
            while True:
                found.append(session.run(element))
        except tf.errors.OutOfRangeError:
            return [np.asarray(each).tolist() for each in found]


def _ignored():
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 2.0])
    return numbers.map(lambda x: tf.check_numerics(1 / x, "")).apply(data.ignore_errors())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: d.apply(data.batch_and_drop_remainder(2)), [[0, 1], [2, 3]]),
        (lambda d: d.apply(data.map_and_batch(lambda x: x + 1, 3)), [[1, 2, 3], [4, 5]]),
        (
            lambda d: d.map(tf.range).apply(
                data.padded_batch_and_drop_remainder(2, [None])
            ),
            [[[0], [0]], [[0, 1, 0], [0, 1, 2]]],
        ),
        (lambda d: d.apply(data.sliding_window_batch(3)), [[0, 1, 2], [1, 2, 3], [2, 3, 4]]),
        (lambda d: d.apply(data.sliding_window_batch(2, 2)), [[0, 1], [2, 3]]),
        (
            lambda d: tf.data.Dataset.zip((d, d)).apply(
                data.sliding_window_batch(2, window_shift=2, window_stride=2)
            ),
            [[[0, 2], [0, 2]], [[2, 4], [2, 4]]],
        ),
        (lambda d: d.apply(data.assert_element_shape(tf.TensorShape([]))), [0, 1, 2, 3, 4]),
        (
            lambda d: d.apply(data.group_by_window(lambda x: x % 2, lambda _, g: g.batch(9), 9)),
            [[0, 2, 4], [1, 3]],
        ),
        (
            lambda d: d.apply(
                data.parallel_interleave(tf.data.Dataset.from_tensors, 1)
            ),
            [0, 1, 2, 3, 4],
        ),
        (lambda _: _ignored(), [1.0, 0.5]),
        (lambda d: d.batch(2).apply(data.unbatch()), [*range(5)]),
        (lambda d: d.apply(data.enumerate_dataset(start=7)).take(1), [[7, 0]]),
    ],
)  # fmt: skip
def test_transformations(make, expected):
    """Each transformation gives what its name says."""
    assert _all(make(tf.data.Dataset.range(5))) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_order_is_free():
    """What may come in any order comes once."""
    numbers = tf.data.Dataset.range(5)
    sloppy = data.sloppy_interleave(tf.data.Dataset.from_tensors, 2)
    assert sorted(_all(numbers.apply(sloppy))) == [*range(5)]
    shuffled = data.shuffle_and_repeat(5, count=2)
    assert sorted(_all(numbers.apply(shuffled))) == sorted([*range(5)] * 2)


def test_reduction():
    """A reducer's functions make one value of all examples."""
    reducer = data.Reducer(
        lambda _: tf.constant(0, tf.int64), lambda state, x: state + x, lambda state: -state
    )
    with tf.Session() as session:
        assert session.run(data.reduce_dataset(tf.data.Dataset.range(5), reducer)) == -10


def test_shapes_are_asserted():
    """An example of another shape is an error when it comes."""
    dataset = tf.data.Dataset.range(3).map(tf.range)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        _all(dataset.apply(data.assert_element_shape(tf.TensorShape([2]))))


def test_features_of_files(tmp_path):
    """Batches of features come from files of records, once."""
    path = str(tmp_path / "records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(3):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
            example = tf.train.Example(features=tf.train.Features(feature={"n": feature}))
            writer.write(example.SerializeToString())
    batch = data.read_batch_features(
        path, 3, {"n": tf.FixedLenFeature([], tf.int64)}, num_epochs=1, randomize_input=False
    )
    with tf.Session() as session:
        assert session.run(batch)["n"].tolist() == [0, 1, 2]


def test_names_of_one_setting_exclude_each_other():
    """A stride has one name at a time."""
    with pytest.raises(ValueError, match="stride must be None with window_shift, got 2"):
        data.sliding_window_batch(3, 2, 1)
