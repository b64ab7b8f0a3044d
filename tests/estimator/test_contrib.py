"""`tf.contrib.estimator` and `tf.contrib.feature_column`: heads, hooks, sequences."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import estimator
from model_deploy.tf1.contrib.table import contrib_module
from tests.estimator.test_deploying import check_clones

pytestmark = pytest.mark.one_mode
_RANDOM = np.random.RandomState(0)
_WORDS = _RANDOM.randint(0, 6, (32, 4))
_NUMBERS = _RANDOM.randn(32, 1).astype(np.float32)
_LABELS = _WORDS.sum(1) % 3
_COLUMNS = tf.feature_column


@pytest.fixture(autouse=True)
def _quiet():
    tf.logging.set_verbosity(tf.logging.ERROR)  # columns are deprecated, says TensorFlow


def input_fn(batch_size):
    """An `input_fn` of words as sparse rows, of two columns of them, numbers and classes."""
    features = {"words": _WORDS, "a": _WORDS[:, 0], "b": _WORDS[:, 1], "x": _NUMBERS}

    def sparse(features, labels):
        return {**features, "words": tf.sparse.from_dense(features["words"])}, labels

    def read():
        examples = tf.data.Dataset.from_tensor_slices((features, _LABELS))
        return examples.repeat().batch(batch_size).map(sparse)

    return read


def _sequence_model_fn(features, labels, mode):
    """Classifies the sum of a sequence's embeddings, by a head."""
    contrib = contrib_module("tensorflow.contrib.feature_column")
    words = _COLUMNS.sequence_categorical_column_with_identity("words", 6)
    start = tf.glorot_normal_initializer(1)
    column = _COLUMNS.embedding_column(words, 2, initializer=start)
    values, lengths = contrib.sequence_input_layer({"words": features["words"]}, [column])
    mean = tf.reduce_sum(values, 1) / tf.cast(lengths, tf.float32)[:, None]
    last = tf.get_variable("last", [2, 3], initializer=tf.glorot_normal_initializer(2))
    head = contrib_module("tensorflow.contrib.estimator").multi_class_head(3)
    optimizer = tf.train.AdamOptimizer(0.1)
    return head.create_estimator_spec(
        features,
        mode,
        tf.matmul(mean, last),
        labels,
        train_op_fn=lambda loss: optimizer.minimize(loss, tf.train.get_global_step()),
    )


def _sequences(**settings):
    return estimator.Estimator(_sequence_model_fn, **settings)


def _shared(**settings):
    contrib = contrib_module("tensorflow.contrib.estimator")
    pair = [_COLUMNS.categorical_column_with_identity(name, 6) for name in "ab"]
    start = tf.glorot_normal_initializer(1)
    columns = _COLUMNS.shared_embedding_columns(pair, 2, initializer=start)
    columns.append(_COLUMNS.numeric_column("x"))
    return contrib.DNNEstimator(
        head=contrib.multi_class_head(3), hidden_units=[4], feature_columns=columns, **settings
    )


@pytest.mark.parametrize("make", [_sequences, _shared])
def test_clones_train_as_one(make, tmp_path):
    """Sequences and shared embeddings train on two clones as Estimator trains them by itself."""
    check_clones(make, input_fn, tmp_path, steps=6)


def test_sequences_are_rows_of_the_table():
    """Of a sequence comes the row of each word, then zeros; and its length."""
    contrib = contrib_module("tensorflow.contrib.feature_column")
    words = _COLUMNS.sequence_categorical_column_with_identity("words", 3)
    table = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    column = _COLUMNS.embedding_column(words, 2, initializer=tf.constant_initializer(table))
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 0, 1], tf.int64), [2, 2])
    values, lengths = contrib.sequence_input_layer({"words": sparse}, [column])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, counts = session.run([values, lengths])
    np.testing.assert_array_equal(rows, [[table[2], table[0]], [table[1], [0, 0]]])
    assert counts.tolist() == [2, 1]
    with pytest.raises(ValueError, match="weight_collections must be None, got 'c'"):
        contrib.sequence_input_layer({}, [column], weight_collections="c")


@pytest.mark.parametrize(
    ("head", "labels", "logits", "loss"),
    [
        # ln(1 + e^0) for each; the squares of 1 and 3, over 2 examples; ln 3.
        ("binary_classification_head", [[0], [1]], [[0.0], [0.0]], np.log(2)),
        ("regression_head", [[1.0], [2.0]], [[2.0], [5.0]], 5.0),
        ("multi_class_head", [[0], [2]], np.zeros([2, 3]), np.log(3)),
    ],
)
def test_losses_of_heads_are_means(head, labels, logits, loss):
    """The loss of each head is the mean over the batch of what arithmetic says."""
    make = getattr(contrib_module("tensorflow.contrib.estimator"), head)
    made = make(3) if head.startswith("multi") else make()
    tf.train.create_global_step()
    spec = made.create_estimator_spec(
        {}, "eval", tf.constant(logits, tf.float32), tf.constant(labels)
    )
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(spec.loss), loss, rtol=1e-6)


def test_early_stopping_is_there():
    """What `tf.contrib.estimator` had of hooks is that of `tf.estimator.experimental`."""
    contrib = contrib_module("tensorflow.contrib.estimator")
    for name in ("InMemoryEvaluatorHook", "stop_if_no_decrease_hook", "stop_if_higher_hook"):
        assert getattr(contrib, name) is getattr(estimator.experimental, name)
    assert contrib.add_metrics is estimator.add_metrics
    assert not hasattr(contrib, "RNNEstimator")
