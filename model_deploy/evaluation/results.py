"""Results of an evaluation: the predictions, and scores computed from them."""

import csv
import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

from model_deploy.evaluation.confusion import confusion_matrix

RECALL_AT = 5


@dataclasses.dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions of an evaluation, one entry per example in the order of the dataset.

    Attributes:
      index: number of the example in its split, int64 [n].
      label: class of the example, int64 [n].
      predicted: most likely class, the lowest of several, int64 [n].
      probability: softmax of the logits at `predicted`, float32 [n].
      label_probability: softmax of the logits at `label`, float32 [n].
      rank: how many classes are more likely than the label, int64 [n].
    """

    index: np.ndarray
    label: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray
    label_probability: np.ndarray
    rank: np.ndarray

    def write_csv(self, file: TextIO) -> None:
        """Writes a line of names, then one line per example."""
        writer = csv.writer(file, lineterminator="\n")
        names = [field.name for field in dataclasses.fields(self)]
        writer.writerow(names)
        writer.writerows(zip(*(_cells(getattr(self, name)) for name in names), strict=True))


def _cells(column: np.ndarray) -> list[Any]:
    """Returns the text of a column's cells; nine digits distinguish any two float32."""
    if column.dtype.kind == "f":
        return [f"{value:.9g}" for value in column]
    return column.tolist()


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """The result of evaluating one checkpoint.

    Attributes:
      checkpoint: name of the checkpoint.
      global_step: global step of the checkpoint.
      num_classes: number of classes.
      predictions: the predictions, arrays [examples].
      total_loss: the total loss of training on these examples as one batch; None if
        the model has no loss.
      seconds: duration of the evaluation.
      metrics: values by name of the metrics that `predict` has added.

    Raises:
      ValueError: if a label is no class.
      FloatingPointError: if a prediction is not finite.
    """

    checkpoint: str
    global_step: int
    num_classes: int
    predictions: Predictions
    total_loss: float | None = None
    seconds: float = 0.0
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        finite = np.isfinite(self.predictions.probability)
        if not finite.all():
            raise FloatingPointError(
                f"logits must be finite, got others at step {self.global_step} for "
                f"{np.sum(~finite)} of {self.examples} examples, the first of them "
                f"number {self.predictions.index[~finite][0]}"
            )
        _ = self.confusion  # checks the labels

    @property
    def examples(self) -> int:
        """Number of examples."""
        return len(self.predictions.label)

    @property
    def accuracy(self) -> float:
        """Fraction of examples whose most likely class is their label, in [0, 1]."""
        return float(np.mean(self.predictions.predicted == self.predictions.label))

    @property
    def recall_at_5(self) -> float:
        """Fraction of examples for which fewer than five classes are likelier than the label."""
        return float(np.mean(self.predictions.rank < RECALL_AT))

    @property
    def log_loss(self) -> float:
        """Mean of -ln of the label's probability, in nats; less than 1e-7 counts as 1e-7."""
        likely = np.maximum(self.predictions.label_probability.astype(np.float64), 1e-7)
        return float(-np.mean(np.log(likely)))

    @functools.cached_property
    def confusion(self) -> np.ndarray:
        """Number of examples by label (row) and predicted class (column).

        Returns:
          int64 [num_classes, num_classes].
        """
        return confusion_matrix(
            self.predictions.label, self.predictions.predicted, self.num_classes
        )

    @property
    def class_accuracies(self) -> list[float | None]:
        """Accuracy among the examples of each class; None for a class without examples."""
        right, counts = self.confusion.diagonal(), self.confusion.sum(axis=1)
        return [float(n / count) if count else None for n, count in zip(right, counts, strict=True)]

    @property
    def scores(self) -> dict[str, Any]:
        """The scores over all examples, by name."""
        return {
            "global_step": self.global_step,
            "examples": self.examples,
            "accuracy": self.accuracy,
            "recall_at_5": self.recall_at_5,
            "log_loss": self.log_loss,
            "total_loss": self.total_loss,
            **self.metrics,
            "seconds": round(self.seconds, 3),
        }
