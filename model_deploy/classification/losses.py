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

    Label smoothing is that of section 7 of Szegedy et al.,
    https://arxiv.org/abs/1512.00567: the target is `1 - label_smoothing` for the
    label, plus `label_smoothing / classes` for every class.

    Args:
      logits: float [batch, classes].
      labels: int [batch], in [0, classes).
      auxiliary_logits: those of an auxiliary head, float [batch, classes], which count
        0.4 times.
      label_smoothing: in [0, 1).
    """
    one_hot = tf.one_hot(labels, logits.shape.as_list()[-1])
    if auxiliary_logits is not None:
        tf.losses.softmax_cross_entropy(
            one_hot,
            auxiliary_logits,
            weights=AUXILIARY_WEIGHT,
            label_smoothing=label_smoothing,
            scope="aux_loss",
        )
    tf.losses.softmax_cross_entropy(one_hot, logits, label_smoothing=label_smoothing)
