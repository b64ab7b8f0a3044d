"""The loss of an image classifier, the same in training and evaluation."""

from typing import Any

import tensorflow.compat.v1 as tf

# Weight of an auxiliary head, section 5 of https://arxiv.org/abs/1409.4842 has 0.3;
# TF-Slim trained its published checkpoints with 0.4.
AUXILIARY_WEIGHT = 0.4


def add_classification_losses(
    logits: Any, labels: Any, *, auxiliary_logits: Any = None, label_smoothing: float = 0.0
) -> None:
    """Adds the mean softmax cross entropy of a batch to the `LOSSES` collection.

    Label smoothing as in section 7 of Szegedy et al., https://arxiv.org/abs/1512.00567: the target
    is `1 - label_smoothing` for the label, plus `label_smoothing / classes` for every class.

    Args:
      logits: float [batch, classes].
      labels: int [batch], in [0, classes); or class probabilities, float [batch, classes].
      auxiliary_logits: logits of an auxiliary head, float [batch, classes], with weight 0.4.
      label_smoothing: in [0, 1).

    Raises:
      ValueError: for probabilities of another number of classes than the logits have.
    """
    targets = _targets(tf.convert_to_tensor(labels), logits)
    if auxiliary_logits is not None:
        tf.losses.softmax_cross_entropy(
            targets,
            auxiliary_logits,
            weights=AUXILIARY_WEIGHT,
            label_smoothing=label_smoothing,
            scope="aux_loss",
        )
    tf.losses.softmax_cross_entropy(targets, logits, label_smoothing=label_smoothing)


def _targets(labels: Any, logits: Any) -> Any:
    """Returns class probabilities, [batch, classes], for labels of either kind."""
    classes = logits.shape.as_list()[-1]
    if not labels.dtype.is_floating:
        return tf.one_hot(labels, classes)
    if labels.shape.rank != 2 or labels.shape.as_list()[-1] not in (classes, None):
        raise ValueError(
            f"labels must be [batch, {classes}], shares of the classes of the logits, "
            f"got {labels.shape}"
        )
    return tf.cast(labels, logits.dtype)
