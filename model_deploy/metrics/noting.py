"""`add_metric`: names a metric in `model_fn`, as `tf.losses` adds a loss; sums of all clones."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.clones import METRICS, collect_members
from model_deploy.metrics.metric import Metric
from model_deploy.parts import Clone


class NotedMetric(NamedTuple):
    """A metric of one clone's examples; an item of the collection `METRICS`.

    Attributes:
      metric: the metric.
      statistics: its sums over the clone's batch, a float64 vector.
      examples: labels, predictions and weights, as `add_metric` got them.
    """

    metric: Metric
    statistics: Any
    examples: tuple[Any, ...]

    @property
    def name(self) -> str:
        """Name of the statistics, which tells whose clone the metric is."""
        return str(self.statistics.name)


def add_metric(metric: Metric, labels: Any, predictions: Any, weights: Any = None) -> None:
    """Adds a metric to what `train` shows and `evaluate_metrics` computes; called in `model_fn`.

    Adds to the collection `METRICS`.  Take predictions from tensors that the loss is made of: an
    op that reads a variable again may see the value after the update.

    Args:
      metric: such as `AUC()`; metrics of one model must differ in their names.
      labels: a tensor, as the metric says.
      predictions: a tensor, as the metric says, such as `tf.sigmoid(logits)` of shape [n].
      weights: how much each example counts, a tensor of n numbers; None for 1 each.

    Raises:
      ValueError: if shapes do not fit each other.
    """
    statistics = tf.stop_gradient(metric.statistics(labels, predictions, weights))
    examples = (labels, predictions, weights)
    tf.add_to_collection(METRICS, NotedMetric(metric, statistics, examples))


def metrics_of(clones: Sequence[Clone]) -> list[list[NotedMetric]]:
    """Returns for each metric of a model what each clone has noted, in one order everywhere.

    Reads the collection `METRICS`.

    Args:
      clones: the clones, or parts of clones, of one deployment.

    Raises:
      ValueError: if clones have other metrics than the first one, or two have one name.
    """
    by_clone = collect_members(METRICS, clones).clones
    metrics = [[noted.metric for noted in items] for items in by_clone]
    for own in metrics:
        names = [metric.name for metric in own]
        if own != metrics[0]:
            first = [metric.name for metric in metrics[0]]
            raise ValueError(f"all clones must add the same metrics, got {first} and {names}")
        if len({*names}) < len(names):
            raise ValueError(f"metrics must have different names, got {', '.join(names)}")
    return [list(column) for column in zip(*by_clone, strict=True)]
