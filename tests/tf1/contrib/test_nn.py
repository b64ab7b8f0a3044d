"""`tf.contrib.nn` against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import nn

pytestmark = pytest.mark.one_mode

_LOGITS = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
_LABELS = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
_NORMS = np.log(np.exp(_LOGITS).sum(1))
_X = np.linspace(-3, 3, 7)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        (
            "deprecated_flipped_softmax_cross_entropy_with_logits",
            (_LOGITS, _LABELS),
            _NORMS - (_LOGITS * _LABELS).sum(1),
        ),
        (
            "deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
            (_LOGITS, [2, 0]),
            _NORMS - _LOGITS[[0, 1], [2, 0]],
        ),
        (
            "deprecated_flipped_sigmoid_cross_entropy_with_logits",
            (_LOGITS, _LABELS),
            np.log1p(np.exp(_LOGITS)) - _LOGITS * _LABELS,
        ),
        ("scaled_softplus", (_X, 0.5), 0.5 * np.log1p(np.exp(_X / 0.5))),
        ("scaled_softplus", (_X, 0.5, 1.0), np.minimum(0.5 * np.log1p(np.exp(_X / 0.5)), 1)),
        ("nth_element", (_LOGITS, 1), [1, 0]),
        ("nth_element", (_LOGITS, 0, True), [2, 3]),
        (
            "conv1d_transpose",
            (np.array([[[1.0], [2.0]]]), np.array([[[10.0]], [[1.0]]]), [1, 4, 1], 2),
            [[[10], [1], [20], [2]]],
        ),
        ("alpha_dropout", (_X, 1.0), _X),
    ],
)
def test_values(name, arguments, expected):
    """Each function computes its formula, with the arguments in contrib's order."""
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(getattr(nn, name)(*arguments)), expected)


def test_alpha_dropout_keeps_mean_and_variance():
    """Values of mean 0 and variance 1 keep both, though a third of them are dropped."""
    x = np.random.RandomState(0).normal(size=[100_000]).astype(np.float32)
    with tf.Session() as session:
        found = session.run(nn.alpha_dropout(tf.constant(x), 2 / 3, seed=1))
    assert abs(found.mean()) < 0.02
    assert found.var() == pytest.approx(1, abs=0.03)
    values, counts = np.unique(found, return_counts=True)
    assert counts.max() == pytest.approx(len(x) / 3, rel=0.05)
    assert values[counts.argmax()] < 0


def test_sampled_loss_of_all_classes_is_the_cross_entropy():
    """With every class drawn, and no correction, the loss is that of the softmax."""
    weights, biases = np.eye(3, dtype=np.float32), np.zeros(3, np.float32)
    inputs = _LOGITS.astype(np.float32)
    everything = tf.constant([0, 1, 2], tf.int64), tf.ones([2, 1]), tf.ones([3])
    loss = nn.sampled_sparse_softmax_loss(
        weights,
        biases,
        [2, 0],
        inputs,
        3,
        3,
        sampled_values=everything,
        remove_accidental_hits=True,
    )
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(loss), _NORMS - _LOGITS[[0, 1], [2, 0]], rtol=1e-5)


def test_probability_is_checked():
    """A probability that is none is told."""
    with pytest.raises(ValueError, match=r"over 0 and at most 1, got 1\.5"):
        nn.alpha_dropout(_X, 1.5)
