"""`MetricsEvaluator`: evaluates checkpoints of any model by its metrics, every example once."""

import dataclasses
import functools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.config import DeploymentConfig
from model_deploy.deployment import create_clones
from model_deploy.evaluation.graph import divide_batch, weighted_loss
from model_deploy.evaluation.metric_sums import MetricSums
from model_deploy.evaluation.passes import Passes, check_has_examples

_SIZE, _LOSS = "size", "weighted_loss"


@dataclasses.dataclass(frozen=True)
class MetricsEvaluation:
    """The metrics of one checkpoint.

    Attributes:
      checkpoint: path of the checkpoint.
      global_step: its global step.
      examples: number of examples.
      metrics: values by name.
      total_loss: the total loss of training on these examples as one batch; None if the model
        has no loss.
      seconds: duration of the evaluation.
    """

    checkpoint: str
    global_step: int
    examples: int
    metrics: dict[str, float]
    total_loss: float | None
    seconds: float

    @property
    def scores(self) -> dict[str, float]:
        """The metrics, and `total_loss` if there is one, as `evaluate` of `train` returns them."""
        loss = {} if self.total_loss is None else {"total_loss": self.total_loss}
        return {**self.metrics, **loss}


class MetricsEvaluator:
    """Evaluates one checkpoint after another by the metrics that a model adds.

    Like `Evaluator`, but the model need not be a classifier.  Use it in a `with` block.

    Args:
      model_fn: called once per clone with a part of a batch; builds the model and calls
        `metrics.add_metric`.  Losses that it adds make the total loss, as in training.
      batches: builds the inputs; returns tensors of shape [n, ...], which are run from the start
        to the end of the data for each evaluation.
      exact: whether `AUC` and `PRAUC` are exact, from the predictions of all examples, 24 bytes
        each and metric; otherwise they are those of a histogram, as in training.  Exact ones take
        scores of any range.
      **options: `config`, `use_averages`, `max_num_batches`, `master` and `session_config`, as
        for `Evaluator`.

    Raises:
      ValueError: if the model adds no metric; as `metrics.add_metric`.
    """

    def __init__(
        self,
        model_fn: Callable[[Any], Any],
        batches: Callable[[], Any],
        *,
        exact: bool = True,
        **options: Any,
    ) -> None:
        self._exact = exact
        self._passes = Passes(functools.partial(self._build, model_fn, batches), **options)

    def __enter__(self) -> "MetricsEvaluator":
        self._passes.open()
        return self

    def __exit__(self, *_: object) -> None:
        self._passes.close()

    def evaluate(self, checkpoint: str | os.PathLike[str]) -> MetricsEvaluation:
        """Evaluates a checkpoint.

        Args:
          checkpoint: path of a checkpoint, or of a folder, for its newest one.

        Raises:
          UndefinedMetricError: if the examples do not define a metric.
          ValueError: if there is no such checkpoint, it is of another model, the inputs are
            empty, or a label or weight breaks a metric's rule.
          FloatingPointError: if a prediction does.
          MemoryError: if a batch does not fit into the memory of a device.
          RuntimeError: outside of a `with` block.
        """
        start = time.perf_counter()
        found = self._passes.run(checkpoint)
        examples = int(np.sum(found.runs[_SIZE]))
        check_has_examples(examples)
        losses = found.runs.get(_LOSS)
        return MetricsEvaluation(
            checkpoint=found.checkpoint,
            global_step=found.global_step,
            examples=examples,
            metrics=self._metrics.values(found.runs),
            total_loss=None if losses is None else float(np.sum(losses) / examples),
            seconds=time.perf_counter() - start,
        )

    def _build(
        self, model_fn: Callable[[Any], Any], batches: Callable[[], Any], config: DeploymentConfig
    ) -> dict[str, Any]:
        """Builds inputs and clones in the default graph; returns what to fetch for each batch."""
        with tf.device(config.inputs_device()):
            parts = divide_batch(batches(), config.num_clones)
        examples = iter([part.examples for part in parts])
        clones = create_clones(config, lambda: model_fn(next(examples)))
        sizes = [part.size for part in parts]
        with tf.device(config.optimizer_device()):
            self._metrics = MetricSums(clones, sizes, exact=self._exact)
            if not self._metrics.fetches:
                raise ValueError("model_fn must add a metric by metrics.add_metric, got none")
            fetches = {_SIZE: tf.add_n(sizes), **self._metrics.fetches}
            loss = weighted_loss(clones, sizes)
        return fetches if loss is None else fetches | {_LOSS: loss}
