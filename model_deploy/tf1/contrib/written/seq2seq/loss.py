"""The cross entropy of sequences, weighted by step."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Weighted cross entropies of sequences, summed or averaged over steps, examples or both.

    An average is the sum of the weighted losses over the sum of the weights; a sum is, as in
    TensorFlow 1, over the number of weights that are not 0. Both are 0 where that is 0.

    Args:
      logits: float [batch, steps, classes].
      targets: integers [batch, steps].
      weights: float [batch, steps].
      average_across_timesteps: whether steps are averaged.
      average_across_batch: whether examples are averaged.
      sum_over_timesteps: whether steps are summed.
      sum_over_batch: whether examples are summed.
      softmax_loss_function: gets `labels` [n] and `logits` [n, classes] and returns losses [n]; by
        default the sparse softmax cross entropy.
      name: of the ops.

    Returns:
      Float: a number, [batch], [steps] or, with neither an average nor a sum, [batch, steps].

    Raises:
      ValueError: for shapes of another rank, or an average and a sum together.
    """
    logits, targets, weights = map(tf.convert_to_tensor, (logits, targets, weights))
    for field, value, rank in (
        ("logits", logits, 3),
        ("targets", targets, 2),
        ("weights", weights, 2),
    ):
        if value.shape.ndims not in (None, rank):
            raise ValueError(f"{field} must have {rank} dimensions, got shape {value.shape}")
    averages = average_across_timesteps or average_across_batch
    if averages and (sum_over_timesteps or sum_over_batch):
        raise ValueError("sum_over_timesteps and sum_over_batch must not be with an average")
    loss_of = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat = loss_of(labels=tf.reshape(targets, [-1]), logits=tf.reshape(logits, [-1, classes]))
        losses = tf.reshape(flat, tf.shape(targets)) * tf.cast(weights, flat.dtype)
        over_steps = average_across_timesteps or sum_over_timesteps
        axes = [0] * (average_across_batch or sum_over_batch) + [1] * over_steps
        if not axes:
            return losses
        counted = weights if averages else tf.not_equal(weights, 0)
        count = tf.reduce_sum(tf.cast(counted, losses.dtype), axes)
        return tf.div_no_nan(tf.reduce_sum(losses, axes), count)
