"""`Metric`: sums over examples, in a vector of fixed size, from which a value is computed."""

import abc
import dataclasses
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

# What statistics begin with: how many labels, predictions and weights broke the metric's rules.
_CHECKED = ("labels", "predictions", "weights")


class UndefinedMetricError(ValueError):
    """The examples do not define the metric, such as those of one class the area under a curve."""


@dataclasses.dataclass(frozen=True)
class Metric(abc.ABC):
    """A number that tells how good predictions are, computed from sums over examples.

    `statistics` gives the sums over a batch.  Those of several batches, clones or workers are
    added, in any order, and `value` gives the number for all of their examples, as if they were one
    batch.  A label, prediction or weight that breaks a rule adds nothing but a count, and `value`
    raises an error for it.

    Attributes:
      name: name of the value; '' for the name of the kind of metric, such as `auc`.
    """

    name: str = ""

    # In words, the rules of labels and of predictions.
    _label_rule = "from 0 to 1"
    _prediction_rule = "from 0 to 1"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._kind())

    def statistics(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Returns the sums over a batch.

        Args:
          labels: a tensor [n], or as the metric says.
          predictions: a tensor [n], or as the metric says.
          weights: how much each example counts, at least 0, a tensor of n numbers; None for 1 each.

        Returns:
          A float64 vector, of a size that the metric alone decides.

        Raises:
          ValueError: if shapes do not fit each other.
        """
        with tf.name_scope(f"metric_{self._kind()}"):
            labels, predictions = self._tensors(labels, predictions)
            count = tf.shape(predictions)[:1]
            if weights is None:
                weights = tf.ones(count, tf.float64)
            weights = tf.reshape(tf.cast(weights, tf.float64), count)
            fits = tf.is_finite(weights) & (weights >= 0)
            checks = [
                self._labels_fit(labels, predictions),
                self._predictions_fit(predictions),
                fits,
            ]
            bad = [tf.reduce_sum(tf.cast(~check, tf.float64)) for check in checks]
            good = checks[0] & checks[1] & checks[2]
            weights = tf.where(good, weights, tf.zeros_like(weights))
            labels, predictions = _only(good, labels), _only(good, predictions)
            sums = self._sums(labels, predictions, weights)
            return tf.concat([tf.stack(bad), tf.reshape(sums, [-1])], axis=0, name="statistics")

    def value(self, totals: np.ndarray) -> float:
        """Returns the metric of all examples whose statistics were added up.

        Args:
          totals: the sum of what `statistics` returned, a float64 vector.

        Raises:
          UndefinedMetricError: if the examples do not define it.
          ValueError: if a label or weight breaks the metric's rule.
          FloatingPointError: if a prediction does.
        """
        bad, sums = totals[: len(_CHECKED)], totals[len(_CHECKED) :]
        rules = (self._label_rule, self._prediction_rule, "finite and at least 0")
        for what, rule, count in zip(_CHECKED, rules, bad, strict=True):
            if count > 0:
                kind = FloatingPointError if what == "predictions" else ValueError
                raise kind(f"{what} of {self.name} must be {rule}, got {count:.0f} others")
        return self._value(sums)

    def undefined(self, needed: str, got: str) -> UndefinedMetricError:
        """Returns the error for examples that do not define the metric."""
        return UndefinedMetricError(f"{self.name} must have {needed}, got {got}")

    @abc.abstractmethod
    def _kind(self) -> str:
        """The name of the kind of metric."""

    @abc.abstractmethod
    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        """Sums over examples whose labels, predictions and weights keep the rules."""

    @abc.abstractmethod
    def _value(self, sums: np.ndarray) -> float:
        """The metric, from what `_sums` gave."""

    def _tensors(self, labels: Any, predictions: Any) -> tuple[Any, Any]:
        """Returns labels and predictions as float64 vectors."""
        labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
        if not labels.shape.is_compatible_with(predictions.shape):
            raise ValueError(
                f"labels of {self.name} must have the shape of the predictions, got "
                f"{labels.shape} and {predictions.shape}"
            )
        both = [tf.reshape(tf.cast(each, tf.float64), [-1]) for each in (labels, predictions)]
        return both[0], both[1]

    def _labels_fit(self, labels: Any, predictions: Any) -> Any:
        """Whether each example's labels keep the rule, bool [n]."""
        del predictions
        return (labels >= 0) & (labels <= 1)  # False for NaN

    def _predictions_fit(self, predictions: Any) -> Any:
        """Whether each example's prediction keeps the rule, bool [n]."""
        return (predictions >= 0) & (predictions <= 1)


def _only(good: Any, values: Any) -> Any:
    """Replaces rows of examples that are not good by zeros, as 0 times NaN is NaN."""
    rows = tf.reshape(good, [-1, *[1] * (values.shape.rank - 1)])
    return tf.where_v2(rows, values, tf.zeros_like(values))
