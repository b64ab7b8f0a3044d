"""`tf.contrib.training.bucket` and `bucket_by_sequence_length`: batches of what is alike."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import buckets
from tests.tf1.contrib.sessions import read

pytestmark = pytest.mark.one_mode


def _numbers(count):
    return tf.train.range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [(0, [0, 2]), (0, [4, 6]), (1, [1, 3]), (1, [5, 7])]),
        ({"batch_size": [3, 2]}, [(0, [0, 2, 4]), (1, [1, 3]), (1, [5, 7])]),
        (
            {"batch_size": 3, "allow_smaller_final_batch": True},
            [(0, [0, 2, 4]), (0, [6, 8]), (1, [1, 3, 5]), (1, [7])],
        ),
        ({"kept": 5}, [(0, [0, 2]), (1, [1, 3])]),
        ({"num_threads": 2, "bucket_capacities": [4, 4]}, None),
    ],
    ids=["plain", "sizes", "smaller", "kept", "threads"],
)
def test_bucket(options, expected):
    """Examples of a bucket come together and in order; what is too few at the end is left out."""
    number = _numbers(9)
    options = dict(options)
    if "kept" in options:
        options["keep_input"] = number < options.pop("kept")
    size = options.pop("batch_size", 2)
    which, batch = buckets.bucket({"n": number}, number % 2, size, 2, **options)
    found = sorted((int(w), each["n"].tolist()) for w, each in read([which, batch]))
    if expected is None:
        assert all(n % 2 == w for w, numbers in found for n in numbers)
        assert len({n for _, numbers in found for n in numbers}) == 8
    else:
        assert found == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bucket_by_sequence_length():
    """Sequences of like lengths come together, with zeros up to the longest of a batch."""
    length = _numbers(8)
    sequence = tf.range(length)
    lengths, [batch] = buckets.bucket_by_sequence_length(
        length, [sequence], 2, [3, 6], shapes=[[None]], dynamic_pad=True
    )
    assert batch.shape.as_list() == [2, None]
    found = {tuple(each): rows for each, rows in read([lengths, batch])}
    assert sorted(found) == [(0, 1), (3, 4), (6, 7)]
    for sizes, rows in found.items():
        expected = np.zeros([2, max(sizes)], int)
        for row, size in zip(expected, sizes, strict=True):
            row[:size] = range(size)
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("bucket", ([0], 0, 2, 1), "num_buckets must be at least 2, got 1"),
        (
            "bucket",
            ([0], 0, [2, 3, 4], 2),
            r"batch_size must be 2, one per bucket, got \[2, 3, 4\]",
        ),
        ("bucket_by_sequence_length", (1, [0], 2, [3, 3]), r"must increase, got \[3, 3\]"),
        ("bucket_by_sequence_length", (1, [0], 2, []), r"must increase, got \[\]"),
    ],
)
def test_refusals(function, arguments, message):
    """What cannot be is told with field and value."""
    with pytest.raises(ValueError, match=message):
        getattr(buckets, function)(*arguments)


def test_shapes_must_be_known():
    """Without padding all examples have one shape."""
    with pytest.raises(ValueError, match="shapes must be known without dynamic_pad"):
        buckets.bucket([tf.placeholder(tf.int32, [None])], 0, 2, 2)
