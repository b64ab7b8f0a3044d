"""The loss of a classifier against NumPy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.training import add_classification_losses

pytestmark = pytest.mark.one_mode

LOGITS = np.array([[2.0, 1.0, -1.0], [0.0, 3.0, 0.5]], np.float32)
LABELS = np.array([0, 2])


def _cross_entropy(logits, labels, smoothing):
    targets = np.eye(3)[labels] * (1 - smoothing) + smoothing / 3
    log_softmax = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -(targets * log_softmax).sum(axis=1).mean()


OTHERS = np.array([1, 0])
SHARES = (0.3 * np.eye(3)[LABELS] + 0.7 * np.eye(3)[OTHERS]).astype(np.float32)


@pytest.mark.parametrize(
    ("labels", "parts"), [(LABELS, [(1, LABELS)]), (SHARES, [(0.3, LABELS), (0.7, OTHERS)])]
)
@pytest.mark.parametrize(("smoothing", "auxiliary"), [(0.0, None), (0.1, -LOGITS)])
def test_loss(smoothing, auxiliary, labels, parts):
    """Mean cross entropy with smoothed labels, plus 0.4 times that of the auxiliary head. With 30 %
    of one class and 70 % of another, the loss is as much of both classes' losses.
    """
    options = {"auxiliary_logits": auxiliary, "label_smoothing": smoothing}
    add_classification_losses(tf.constant(LOGITS), tf.constant(labels), **options)
    expected = sum(
        share * weight * _cross_entropy(logits, classes, smoothing)
        for share, classes in parts
        for logits, weight in ((LOGITS, 1), (auxiliary, 0.4))
        if logits is not None
    )
    with tf.Session() as session:
        assert session.run(tf.losses.get_total_loss()) == pytest.approx(expected, rel=1e-6)


def test_loss_rejects_shares_of_other_classes():
    """Shares must be of as many classes as the logits."""
    with pytest.raises(ValueError, match=r"labels must be \[batch, 3\], .* got \(2, 4\)"):
        add_classification_losses(tf.constant(LOGITS), tf.zeros([2, 4]))
