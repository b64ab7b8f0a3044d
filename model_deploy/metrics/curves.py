"""Areas under curves: of receiver operating characteristics, and of precision over recall.

Both follow from how many positive and negative examples have each score.  In a stream the scores
fall into bins of a histogram; the area is then that of scores rounded to bins.  With a bin for each
score that occurs, the area is exact.  Both areas are those of scikit-learn's `roc_auc_score`, in
which a positive example that ties with a negative one counts half (Hanley and McNeil, 1982), and
`average_precision_score`, the sum of precision times the gain of recall, without interpolation
(Davis and Goadrich, 2006, show why precision must not be interpolated linearly).
"""

import dataclasses
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.metrics.metric import Metric

# Bins are equally wide in log(p / (1 - p)), from minus this number to it: click probabilities of
# 0.001 and 0.002 are as far from each other as 0.5 and 0.67.
MOST_LOG_ODDS = 16.0
# Of finite log-odds, far beyond those of the last bins.
_LEAST = 1e-9
# Shares of the weight below this are what is left of 0 by rounding, where sums were subtracted.
_NOTHING = 1e-9


def log_odds_bins(probabilities: Any, num_bins: int) -> Any:
    """Returns the bin of each probability.

    Args:
      probabilities: float64 [n], from 0 to 1.
      num_bins: the number of bins.

    Returns:
      int32 [n], rising with the probability.
    """
    clipped = tf.clip_by_value(probabilities, _LEAST, 1 - _LEAST)
    log_odds = tf.log(clipped) - tf.log1p(-clipped)
    place = (log_odds / MOST_LOG_ODDS + 1) / 2 * num_bins
    return tf.cast(tf.clip_by_value(tf.floor(place), 0, num_bins - 1), tf.int32)


@dataclasses.dataclass(frozen=True)
class _Curve(Metric):
    """The area under a curve, of a histogram of labels over predictions.

    Labels and predictions are float [n], from 0 to 1.  A label between 0 and 1 counts as an example
    of each class, with that share of the weight.

    Attributes:
      num_bins: number of bins, equally wide in the log-odds of the prediction, from -16 to 16; the
        thresholds are their bounds.
    """

    num_bins: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_bins < 2:
            raise ValueError(f"num_bins must be at least 2, got {self.num_bins}")

    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        bins = log_odds_bins(predictions, self.num_bins)
        of_class = tf.stack([weights * labels, weights * (1 - labels)], axis=1)
        return tf.transpose(tf.math.unsorted_segment_sum(of_class, bins, self.num_bins))

    def _value(self, sums: np.ndarray) -> float:
        positives, negatives = sums.reshape(2, self.num_bins)
        return self.area(positives, negatives)

    def check_classes(self, positives: np.ndarray, negatives: np.ndarray) -> None:
        """Checks that there are examples of both classes, of any number of bins [b]."""
        weights = np.array([positives.sum(), negatives.sum()])
        missing = weights <= _NOTHING * weights.sum()
        if missing.all():
            raise self.undefined("an example", "none")
        if missing.any():
            found = "positive" if missing[1] else "negative"
            raise self.undefined("positive and negative examples", f"only {found} ones")

    def area(self, positives: np.ndarray, negatives: np.ndarray) -> float:
        """Returns the area under the curve.

        Args:
          positives: weight of the positive examples by score, float64 [bins], in ascending order.
          negatives: weight of the negative examples, as `positives`.

        Raises:
          UndefinedMetricError: if all examples are of one class, or there is none.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class AUC(_Curve):
    """Area under the curve of true over false positive rates: float from 0 to 1.

    It is the probability that a positive example has a higher score than a negative one; equal
    scores, or ones in the same of `num_bins` bins, count half.  Labels and predictions: float [n].
    """

    def _kind(self) -> str:
        return "auc"

    def area(self, positives: np.ndarray, negatives: np.ndarray) -> float:
        """Returns the area; `positives` and `negatives` are float64 [bins]."""
        self.check_classes(positives, negatives)
        lower = np.cumsum(negatives) - negatives
        wins = np.sum(positives * (lower + negatives / 2))
        return float(wins / positives.sum() / negatives.sum())


@dataclasses.dataclass(frozen=True)
class PRAUC(_Curve):
    """Area under the curve of precision over recall, the average precision: float from 0 to 1.

    The sum over thresholds of the precision times the gain of recall.  Labels and predictions:
    float [n].
    """

    def _kind(self) -> str:
        return "pr_auc"

    def area(self, positives: np.ndarray, negatives: np.ndarray) -> float:
        """Returns the area; `positives` and `negatives` are float64 [bins]."""
        self.check_classes(positives, negatives)
        positives, negatives = positives[::-1], negatives[::-1]
        found = np.cumsum(positives)
        taken = found + np.cumsum(negatives)
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        return float(np.sum(positives * precision) / positives.sum())


def exact_area(curve: AUC | PRAUC, labels: Any, scores: Any, weights: Any = None) -> float:
    """Returns the exact area under a curve, of scores that are all in memory.

    >>> exact_area(AUC(), [0, 1, 1, 0], [0.1, 0.4, 0.2, 0.2])
    0.875

    Args:
      curve: `AUC()` or `PRAUC()`; its bins do not count here.
      labels: floats [n], from 0 to 1.
      scores: finite floats [n], of any range: larger ones for label 1.
      weights: floats [n], at least 0; None for 1 each.

    Raises:
      UndefinedMetricError: if all examples are of one class, or there is none.
      ValueError: for lengths that differ, and labels or weights out of range.
      FloatingPointError: if a score is not finite.
    """
    labels, scores = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    weights = np.ones_like(labels) if weights is None else np.asarray(weights, np.float64)
    if not labels.shape == scores.shape == weights.shape or labels.ndim != 1:
        shapes = f"{labels.shape}, {scores.shape} and {weights.shape}"
        raise ValueError(f"labels, scores and weights must be vectors of one length, got {shapes}")
    fits = (labels >= 0) & (labels <= 1)
    if not fits.all():
        raise ValueError(f"labels of {curve.name} must be from 0 to 1, got {labels[~fits][0]}")
    if not np.isfinite(scores).all():
        bad = np.sum(~np.isfinite(scores))
        raise FloatingPointError(f"scores of {curve.name} must be finite, got {bad} others")
    fits = np.isfinite(weights) & (weights >= 0)
    if not fits.all():
        raise ValueError(
            f"weights of {curve.name} must be finite and at least 0, got {weights[~fits][0]}"
        )
    distinct, bins = np.unique(scores, return_inverse=True)
    counts = [
        np.bincount(bins, weights * of_class, minlength=max(1, len(distinct)))
        for of_class in (labels, 1 - labels)
    ]
    return curve.area(*counts)
