"""`tf.contrib.estimator`: heads for optimizers of `tf.train`, as functions.

The losses are means over the batch, as those of `tf.contrib` were by default.
"""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import estimator, internals

_MEAN = tf.losses.Reduction.SUM_OVER_BATCH_SIZE


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> Any:
    """A head of logits [batch, 1] and labels 0 and 1, with sigmoid cross entropy."""
    return _head(
        "binary", weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name
    )


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    name: str | None = None,
) -> Any:
    """A head of logits [batch, n_classes], of at least 3 classes, with softmax cross entropy."""
    return _head(
        "multi class", n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _MEAN,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> Any:
    """A head of predictions [batch, label_dimension], with the mean squared error."""
    return _head(
        *("regression", weight_column, label_dimension),
        *(loss_reduction, loss_fn, inverse_link_fn, name),
    )


def _head(kind: str, *settings: Any) -> Any:
    estimator.load()  # whose modules import what TensorFlow no longer has
    return internals.old_head(kind, *settings)
