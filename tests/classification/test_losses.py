"""The loss of a classifier against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training import add_classification_losses

LOGITS = np.array([[2.0, 1.0, -1.0], [0.0, 3.0, 0.5]], np.float32)
LABELS = np.array([0, 2])


def _cross_entropy(logits, labels, smoothing):
    targets = np.eye(3)[labels] * (1 - smoothing) + smoothing / 3
    log_softmax = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -(targets * log_softmax).sum(axis=1).mean()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("auxiliary", [False, True], ids=["one head", "auxiliary head"])
def test_loss(smoothing, auxiliary):
    """Mean cross entropy with smoothed labels, plus 0.4 times that of the auxiliary head."""
    add_classification_losses(
        tf.constant(LOGITS),
        tf.constant(LABELS),
        auxiliary_logits=tf.constant(-LOGITS) if auxiliary else None,
        label_smoothing=smoothing,
    )
    expected = _cross_entropy(LOGITS, LABELS, smoothing)
    if auxiliary:
        expected += 0.4 * _cross_entropy(-LOGITS, LABELS, smoothing)
    with tf.Session() as session:
        assert session.run(tf.losses.get_total_loss()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_of_shares_is_the_weighted_sum_of_losses(smoothing):
    """With 30 % of one class and 70 % of another, the loss is as much of both classes' losses."""
    own, others = LABELS, np.array([1, 0])
    shares = 0.3 * np.eye(3)[own] + 0.7 * np.eye(3)[others]
    add_classification_losses(
        tf.constant(LOGITS),
        tf.constant(shares.astype(np.float32)),
        auxiliary_logits=tf.constant(-LOGITS),
        label_smoothing=smoothing,
    )
    expected = sum(
        share * weight * _cross_entropy(sign * LOGITS, labels, smoothing)
        for share, labels in ((0.3, own), (0.7, others))
        for sign, weight in ((1, 1), (-1, 0.4))
    )
    with tf.Session() as session:
        assert session.run(tf.losses.get_total_loss()) == pytest.approx(expected, rel=1e-6)


def test_loss_rejects_shares_of_other_classes():
    """Shares must be of as many classes as the logits."""
    with pytest.raises(ValueError, match=r"labels must be \[batch, 3\], .* got \(2, 4\)"):
        add_classification_losses(tf.constant(LOGITS), tf.zeros([2, 4]))
