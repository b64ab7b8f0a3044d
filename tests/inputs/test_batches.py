"""`split_batch`: equal parts in order, and clear errors for uneven ones."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import split_batch

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize("num_clones", [1, 3, 6])
def test_parts_are_the_batch_in_order(num_clones):
    """The parts, put together, are the batch."""
    images, labels = np.arange(12.0).reshape(6, 2), np.arange(6)
    parts = split_batch({"image": tf.constant(images), "label": [tf.constant(labels)]}, num_clones)
    with tf.Session() as session:
        values = session.run(parts)
    assert [len(part["image"]) for part in values] == [6 // num_clones] * num_clones
    np.testing.assert_array_equal(np.concatenate([p["image"] for p in values]), images)
    np.testing.assert_array_equal(np.concatenate([p["label"][0] for p in values]), labels)


@pytest.mark.parametrize("is_known", [True, False])
def test_lists_are_split_by_examples(is_known):
    """Ragged and sparse tensors are split as dense ones, their batch size known or not."""
    lists = [[1], [2, 3], [], [4, 5, 6]]
    ragged = tf.ragged.constant(lists, dtype=tf.int64)
    if not is_known:
        splits = tf.placeholder_with_default(ragged.row_splits, [None])
        ragged = tf.RaggedTensor.from_row_splits(ragged.values, splits, validate=False)
    parts = split_batch({"ragged": ragged, "sparse": ragged.to_sparse(), "n": tf.range(4)}, 2)
    assert all(isinstance(part["sparse"], tf.SparseTensor) for part in parts)
    dense = [tf.sparse.to_dense(part["sparse"]) for part in parts]
    with tf.Session() as session:
        values, sparse = session.run([parts, dense])
    assert [part["ragged"].to_list() for part in values] == [lists[:2], lists[2:]]
    assert [part["n"].tolist() for part in values] == [[0, 1], [2, 3]]
    assert np.concatenate(sparse).tolist() == [[1, 0, 0], [2, 3, 0], [0, 0, 0], [4, 5, 6]]


def test_rejects_uneven_lists():
    """A ragged tensor that cannot be split is named by its values."""
    ragged = tf.RaggedTensor.from_row_splits(tf.zeros([2], name="ids"), [0, 1, 1, 2])
    with pytest.raises(ValueError, match=r"a multiple of num_clones=2, got 3 \(ids:0\)"):
        split_batch(ragged, 2)
    with pytest.raises(ValueError, match=r"the same batch size, got {'ids:0': 3, 'range:0': 4}"):
        split_batch([ragged, tf.range(4)], 1)


@pytest.mark.parametrize(
    ("shapes", "num_clones", "message"),
    [
        ([[5, 2]], 2, r"a multiple of num_clones=2, got 5 \(zeros:0\)"),
        ([[4], [6]], 2, "the same batch size, got {'zeros:0': 4, 'zeros_1:0': 6}"),
        ([[]], 2, "a batch dimension, got the scalar zeros:0"),
        ([], 2, "at least one tensor, got none"),
        ([[4]], 0, "num_clones must be at least 1, got 0"),
    ],
    ids=["uneven", "sizes differ", "scalar", "nothing", "no clones"],
)
def test_rejects(shapes, num_clones, message):
    """A batch that cannot be split says why."""
    tensors = [tf.zeros(shape, name="zeros") for shape in shapes]
    with pytest.raises(ValueError, match=message):
        split_batch(tensors, num_clones)


@pytest.mark.parametrize(
    ("sizes", "message"), [((5, 5), "a multiple of num_clones=2"), ((4, 6), "the same batch size")]
)
def test_rejects_when_the_size_is_known_late(sizes, message):
    """A batch size that only the run knows is checked there, in the same words."""
    tensors = [tf.placeholder(tf.float32, [None]) for _ in sizes]
    parts = split_batch(tensors, 2)
    feed = {tensor: np.zeros(size) for tensor, size in zip(tensors, sizes, strict=True)}
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(parts, feed)
    even = {tensor: np.arange(4.0) for tensor in tensors}
    with tf.Session() as session:
        assert [part.tolist() for part in session.run(parts, even)[1]] == [[2.0, 3.0]] * 2
