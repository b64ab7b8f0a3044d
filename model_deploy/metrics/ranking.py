"""Recall and precision among the k items with the highest scores."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.metrics.metric import Metric


@dataclasses.dataclass(frozen=True)
class _AtK(Metric):
    """The mean over examples of a number that follows from the k items with the highest scores.

    Labels are the numbers of the relevant items: int [n], or int [n, m] with different numbers in a
    row, filled up by -1.  Examples without a relevant item do not count.  Predictions are the
    scores of the items: finite floats [n, items].  Where items tie for the last of the k places,
    each counts with its chance to get one in a random order.

    Attributes:
      k: number of items that are shown, at most the number of items.
    """

    k: int = 10

    _label_rule = "the number of an item, or -1"
    _prediction_rule = "finite"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k}")

    def _tensors(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        labels = tf.cast(tf.convert_to_tensor(labels), tf.int64)
        predictions = tf.cast(tf.convert_to_tensor(predictions), tf.float64)
        if predictions.shape.rank != 2 or predictions.shape.as_list()[1] is None:
            raise ValueError(
                f"predictions of {self.name} must be [n, items], with a known number of items, "
                f"got {predictions.shape}"
            )
        if labels.shape.rank not in (1, 2):
            raise ValueError(f"labels of {self.name} must be [n] or [n, m], got {labels.shape}")
        items = predictions.shape.as_list()[1]
        if self.k > items:
            raise ValueError(f"k must be at most the number of items, {items}, got {self.k}")
        if labels.shape.rank == 1:
            labels = labels[:, tf.newaxis]
        return labels, predictions

    def _labels_fit(self, labels: Any, predictions: Any) -> Any:
        items = predictions.shape.as_list()[1]
        return tf.reduce_all((labels >= -1) & (labels < items), axis=1)

    def _predictions_fit(self, predictions: Any) -> Any:
        return tf.reduce_all(tf.is_finite(predictions), axis=1)

    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        is_item = labels >= 0
        scores = tf.gather(predictions, tf.maximum(labels, 0), batch_dims=1)[:, :, tf.newaxis]
        others = predictions[:, tf.newaxis, :]
        higher = tf.reduce_sum(tf.cast(others > scores, tf.float64), axis=2)
        equal = tf.reduce_sum(tf.cast(tf.equal(others, scores), tf.float64), axis=2)
        shown = tf.clip_by_value((self.k - higher) / equal, 0, 1)
        shown = tf.where(is_item, shown, tf.zeros_like(shown))
        hits = tf.reduce_sum(shown, axis=1)
        relevant = tf.reduce_sum(tf.cast(is_item, tf.float64), axis=1)
        weights = tf.where(relevant > 0, weights, tf.zeros_like(weights))
        values = self._of_example(hits, tf.maximum(relevant, 1))
        return tf.stack([tf.reduce_sum(weights * values), tf.reduce_sum(weights)])

    def _value(self, sums: np.ndarray) -> float:
        values, weights = sums
        if weights <= 0:
            raise self.undefined("an example with a relevant item", "none")
        return float(values / weights)

    def _of_example(self, hits: Any, relevant: Any) -> Any:
        """The number of each example, float64 [n], from its numbers of hits and of items."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class RecallAt(_AtK):
    """Share of an example's relevant items that are among its k highest scores, in the mean.

    Labels: int [n] or [n, m], filled up by -1.  Predictions: float [n, items].
    """

    def _kind(self) -> str:
        return f"recall_at_{self.k}"

    def _of_example(self, hits: Any, relevant: Any) -> Any:
        return hits / relevant


@dataclasses.dataclass(frozen=True)
class PrecisionAt(_AtK):
    """Share of relevant items among an example's k highest scores, in the mean.

    Labels: int [n] or [n, m], filled up by -1.  Predictions: float [n, items].
    """

    def _kind(self) -> str:
        return f"precision_at_{self.k}"

    def _of_example(self, hits: Any, relevant: Any) -> Any:
        del relevant
        return hits / self.k
