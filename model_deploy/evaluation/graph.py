"""The graph of an evaluation: divides each batch over the clones and joins their predictions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.config import DeploymentConfig
from model_deploy.deployment import create_clones
from model_deploy.evaluation.metric_sums import MetricSums
from model_deploy.losses import gather_losses
from model_deploy.parts import Clone

Predict = Callable[[Any], tuple[Any, Any]]


class BatchPart(NamedTuple):
    """A clone's part of a batch.

    Attributes:
      examples: tensors in the structure of the batch, with at least one row, as networks may not
        handle an empty batch.
      size: how many of the rows count, an int32 scalar: 0 for a row that only fills up, if the
        batch has fewer rows than there are clones.
    """

    examples: Any
    size: Any


class EvaluationGraph(NamedTuple):
    """Tensors to fetch for each batch.

    Attributes:
      columns: the fields of `Predictions` by name, each [n] over the whole batch; "index" only
        if the batches have it.
      weighted_loss: total loss times n, a float64 scalar; None if the model has no loss.
      num_classes: number of classes.
      metrics: the metrics that `predict` has added.
    """

    columns: dict[str, Any]
    weighted_loss: Any
    num_classes: int
    metrics: MetricSums


def build_evaluation(
    predict: Predict, batches: Callable[[], Any], config: DeploymentConfig
) -> EvaluationGraph:
    """Builds inputs and clones in the default graph.

    Reads the collections `LOSSES` and, if there are losses, `REGULARIZATION_LOSSES`.

    Args:
      predict: called once per clone; builds the model on a part of a batch, and may add losses;
        returns logits, float [n, classes], and labels, int [n].
      batches: builds the inputs; returns tensors of shape [n, ...], where n may vary.  "index" in
        a mapping numbers the examples.
      config: the clones.

    Raises:
      ValueError: if the number of classes is not known; as `metrics.metrics_of`.
    """
    with tf.device(config.inputs_device()):
        parts = divide_batch(batches(), config.num_clones)
    clones = create_clones(config, _model_fn(predict, iter(parts)))
    num_classes = clones[0].outputs["probabilities"].shape.as_list()[-1]
    if num_classes is None:
        raise ValueError("logits must have a known number of classes, got None")
    with tf.device(config.optimizer_device()):
        names = [name for name in clones[0].outputs if name != "probabilities"]
        columns = {
            name: tf.concat(
                [
                    clone.outputs[name][: part.size]
                    for clone, part in zip(clones, parts, strict=True)
                ],
                axis=0,
                name=name,
            )
            for name in names
        }
        sizes = [part.size for part in parts]
        losses = weighted_loss(clones, sizes)
        return EvaluationGraph(columns, losses, num_classes, MetricSums(clones, sizes))


def divide_batch(batch: Any, num_clones: int) -> list[BatchPart]:
    """Divides a batch over clones, in order, into parts whose sizes differ by at most one.

    Args:
      batch: a structure of tensors of shape [n, ...], n at least 1.
      num_clones: number of parts.
    """
    tensors = [tf.convert_to_tensor(tensor) for tensor in tf.nest.flatten(batch)]
    size = tf.shape(tensors[0])[0]
    if num_clones == 1:
        return [BatchPart(batch, size)]
    parts = []
    for i in range(num_clones):
        begin, end = size * i // num_clones, size * (i + 1) // num_clones
        first = tf.minimum(begin, size - 1)
        rows = [tensor[first : tf.maximum(end, first + 1)] for tensor in tensors]
        parts.append(BatchPart(tf.nest.pack_sequence_as(batch, rows), end - begin))
    return parts


def _model_fn(predict: Predict, parts: Iterator[BatchPart]) -> Callable[[], dict[str, Any]]:
    def model_fn() -> dict[str, Any]:
        part = next(parts)
        logits, labels = predict(part.examples)
        outputs = _predictions(tf.convert_to_tensor(logits), tf.cast(labels, tf.int64))
        if isinstance(part.examples, Mapping) and "index" in part.examples:
            outputs["index"] = tf.cast(part.examples["index"], tf.int64)
        return outputs

    return model_fn


def _predictions(logits: Any, labels: Any) -> dict[str, Any]:
    """Returns the columns of `Predictions` for some rows, and the probabilities of all classes."""
    logits = tf.cast(logits, tf.float32)
    probabilities = tf.nn.softmax(logits)
    # Not a gather: for a label that is no class it fails on CPUs and gives 0 on GPUs.
    is_label = tf.one_hot(labels, tf.shape(logits)[-1], True, False)
    lowest = tf.fill(tf.shape(logits), logits.dtype.min)
    of_label = tf.reduce_max(tf.where(is_label, logits, lowest), axis=1, keepdims=True)
    zeros = tf.zeros_like(probabilities)
    predicted = tf.argmax(logits, axis=1)
    probability = tf.gather(probabilities, predicted, batch_dims=1)
    # On the CPU the softmax of a row with a NaN may still have finite numbers.
    has_nan = tf.reduce_any(tf.is_nan(logits), axis=1)
    return {
        "probabilities": probabilities,
        "label": labels,
        "predicted": predicted,
        "probability": tf.where(has_nan, tf.fill(tf.shape(probability), np.nan), probability),
        "label_probability": tf.reduce_sum(tf.where(is_label, probabilities, zeros), axis=1),
        "rank": tf.reduce_sum(tf.cast(logits > of_label, tf.int64), axis=1),
    }


def weighted_loss(clones: Sequence[Clone], part_sizes: Sequence[Any]) -> Any:
    """Returns the total loss times the number of examples, a float64 scalar; None without a loss.

    Training weighs clones equally, as their batches are equal.  Here each clone is weighed by the
    size of its part, so that the sum over batches, divided by the number of examples, is the loss
    of all examples as one batch.

    Args:
      clones: the clones.
      part_sizes: the number of examples of each clone that count, int32 scalars.
    """
    if not tf.get_collection(tf.GraphKeys.LOSSES):
        return None
    losses = gather_losses(clones)
    sizes = [tf.cast(size, tf.float64) for size in part_sizes]
    terms = [
        tf.cast(loss, tf.float64) * len(clones) * size
        for loss, size in zip(losses.clones, sizes, strict=True)
        if loss is not None
    ]
    once = [loss for loss in (losses.shared, losses.regularization) if loss is not None]
    terms += [tf.cast(loss, tf.float64) * tf.add_n(sizes) for loss in once]
    return tf.add_n(terms, name="weighted_loss")
