"""Metrics such as AUC and log loss: sums over examples, which clones and workers add up."""

from model_deploy.metrics.curves import AUC, PRAUC, exact_area
from model_deploy.metrics.metric import Metric, UndefinedMetricError
from model_deploy.metrics.noting import NotedMetric, add_metric, metrics_of
from model_deploy.metrics.probabilities import Calibration, CalibrationError, LogLoss
from model_deploy.metrics.ranking import PrecisionAt, RecallAt

__all__ = [
    "AUC",
    "PRAUC",
    "Calibration",
    "CalibrationError",
    "LogLoss",
    "Metric",
    "NotedMetric",
    "PrecisionAt",
    "RecallAt",
    "UndefinedMetricError",
    "add_metric",
    "exact_area",
    "metrics_of",
]
