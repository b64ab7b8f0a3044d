"""`MetricSums`: metrics over all batches of an evaluation, each example counted once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.metrics import AUC, PRAUC, Metric, NotedMetric, exact_area, metrics_of
from model_deploy.parts import Clone

_EXAMPLES = ("labels", "predictions", "weights")


class MetricSums:
    """The metrics that clones have noted; adds ops to the default graph.

    Reads the collection `METRICS`.

    Args:
      clones: the clones.
      part_sizes: the number of examples of each clone that count, int32 scalars: all of its rows,
        or 0 where a row only fills up.
      exact: whether areas under curves are exact, from the predictions of all examples.

    Attributes:
      fetches: what to fetch for each batch, by name: float64 vectors.

    Raises:
      ValueError: as `metrics.metrics_of`.
    """

    def __init__(
        self, clones: Sequence[Clone], part_sizes: Sequence[Any], *, exact: bool = True
    ) -> None:
        self.fetches: dict[str, Any] = {}
        self._metrics: list[Metric] = []
        for column in metrics_of(clones):
            metric = column[0].metric
            self._metrics.append(metric)
            if exact and isinstance(metric, AUC | PRAUC):
                self.fetches |= _examples(column, part_sizes)
            else:
                counts = [
                    noted.statistics * tf.cast(size > 0, tf.float64)
                    for noted, size in zip(column, part_sizes, strict=True)
                ]
                self.fetches[f"{metric.name}/sums"] = tf.add_n(counts)

    def values(self, runs: Mapping[str, Sequence[np.ndarray]]) -> dict[str, float]:
        """Returns the metrics of all batches by name.

        Args:
          runs: the values of `fetches`, float64 vectors, one for each batch.

        Raises:
          UndefinedMetricError: if the examples do not define a metric.
          ValueError: if a label or weight breaks a metric's rule.
          FloatingPointError: if a prediction does.
        """
        return {metric.name: _value(metric, runs) for metric in self._metrics}


def _value(metric: Metric, runs: Mapping[str, Sequence[np.ndarray]]) -> float:
    sums = runs.get(f"{metric.name}/sums")
    if sums is not None:
        return metric.value(np.sum(sums, axis=0))
    columns = [np.concatenate(runs[f"{metric.name}/{each}"]) for each in _EXAMPLES]
    assert isinstance(metric, AUC | PRAUC)  # others have sums
    return exact_area(metric, *columns)


def _examples(column: Sequence[NotedMetric], part_sizes: Sequence[Any]) -> dict[str, Any]:
    """Returns labels, predictions and weights of all examples that count, float64 vectors."""
    found = {}
    for place, what in enumerate(_EXAMPLES):
        rows = []
        for noted, size in zip(column, part_sizes, strict=True):
            value = noted.examples[place]
            if value is None:
                value = tf.ones_like(noted.examples[1], tf.float64)
            rows.append(tf.reshape(tf.cast(value, tf.float64)[:size], [-1]))
        found[f"{column[0].metric.name}/{what}"] = tf.concat(rows, axis=0)
    return found
