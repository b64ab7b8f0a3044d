"""How well probabilities of a binary event fit: log loss, calibration and its expected error."""

import dataclasses
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.metrics.curves import log_odds_bins
from model_deploy.metrics.metric import Metric


@dataclasses.dataclass(frozen=True)
class LogLoss(Metric):
    """Mean of -(y ln p + (1 - y) ln(1 - p)), in nats: a float of at least 0.

    Labels y and predictions p are float [n], from 0 to 1.

    Attributes:
      epsilon: p is clipped to [epsilon, 1 - epsilon], so that one example adds at most 16.1.
    """

    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < 0.5:
            raise ValueError(f"epsilon must be between 0 and 0.5, got {self.epsilon}")

    def _kind(self) -> str:
        return "log_loss"

    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        clipped = tf.clip_by_value(predictions, self.epsilon, 1 - self.epsilon)
        losses = -labels * tf.log(clipped) - (1 - labels) * tf.log1p(-clipped)
        return tf.stack([tf.reduce_sum(weights * losses), tf.reduce_sum(weights)])

    def _value(self, sums: np.ndarray) -> float:
        losses, weights = sums
        if weights <= 0:
            raise self.undefined("an example", "none")
        return float(losses / weights)


@dataclasses.dataclass(frozen=True)
class Calibration(Metric):
    """Mean prediction over mean label, a float: 1 is best, above 1 too much is predicted.

    Labels and predictions are float [n], from 0 to 1.
    """

    def _kind(self) -> str:
        return "calibration"

    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        values = [weights * predictions, weights * labels, weights]
        return tf.stack([tf.reduce_sum(value) for value in values])

    def _value(self, sums: np.ndarray) -> float:
        predictions, labels, weights = sums
        if weights <= 0:
            raise self.undefined("an example", "none")
        if labels <= 0:
            raise self.undefined("a positive example", "only negative ones")
        return float(predictions / labels)


@dataclasses.dataclass(frozen=True)
class CalibrationError(Metric):
    """Expected calibration error, a float from 0 to 1; 0 is best.

    The mean over examples of |mean prediction - mean label| of the example's bin (Guo et al., On
    Calibration of Modern Neural Networks, 2017, equation 3).  Labels and predictions are
    float [n], from 0 to 1.

    Attributes:
      num_bins: number of bins.
      spacing: in what bins are equally wide: `probability`, as in the paper, or `log_odds`, from
        -16 to 16, which tells small probabilities apart.
    """

    num_bins: int = 20
    spacing: str = "probability"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_bins < 1:
            raise ValueError(f"num_bins must be at least 1, got {self.num_bins}")
        if self.spacing not in ("probability", "log_odds"):
            raise ValueError(f"spacing must be probability or log_odds, got {self.spacing!r}")

    def _kind(self) -> str:
        return "calibration_error"

    def _sums(self, labels: Any, predictions: Any, weights: Any) -> Any:
        if self.spacing == "log_odds":
            bins = log_odds_bins(predictions, self.num_bins)
        else:
            bins = tf.cast(tf.minimum(predictions * self.num_bins, self.num_bins - 1), tf.int32)
        rows = tf.stack([weights * (predictions - labels), weights], axis=1)
        return tf.transpose(tf.math.unsorted_segment_sum(rows, bins, self.num_bins))

    def _value(self, sums: np.ndarray) -> float:
        differences, weights = sums.reshape(2, self.num_bins)
        if weights.sum() <= 0:
            raise self.undefined("an example", "none")
        return float(np.abs(differences).sum() / weights.sum())
