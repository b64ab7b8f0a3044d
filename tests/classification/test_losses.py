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
