"""Cross entropies of lists of steps; the same model for several lengths."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Weighted cross entropies of sequences, one for each.

    Args:
      logits: float [batch, classes], one for each step.
      targets: integers [batch], one for each step.
      weights: float [batch], one for each step.
      average_across_timesteps: whether the sum over the steps is divided by that of the weights.
      softmax_loss_function: gets `labels` and `logits` of a step and returns losses [batch]; by
        default the sparse softmax cross entropy.
      name: of the ops.

    Returns:
      Float [batch].

    Raises:
      ValueError: for lists that are not as long.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            "logits, targets and weights must be as many, got "
            f"{len(logits)}, {len(targets)}, {len(weights)}"
        )
    loss_of = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = [
            loss_of(labels=tf.reshape(target, [-1]), logits=logit) * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        total = tf.add_n(losses)
        # As in TensorFlow 1: a sequence without weights has no loss.
        return total / (tf.add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The sum of `sequence_loss_by_example`.

    Args:
      logits: see there.
      targets: see there.
      weights: see there.
      average_across_timesteps: see there.
      average_across_batch: whether the sum is divided by the number of sequences.
      softmax_loss_function: see there.
      name: of the ops.

    Returns:
      A number, float.
    """
    with tf.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        return tf.reduce_mean(losses) if average_across_batch else tf.reduce_sum(losses)


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], Any],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """The same model for several lengths.

    Args:
      encoder_inputs: for `seq2seq`, one for each step of the longest bucket.
      decoder_inputs: for `seq2seq`.
      targets: integers [batch], one for each step.
      weights: float [batch], one for each step.
      buckets: pairs of the number of steps that are read and that are written.
      seq2seq: from the inputs of a bucket to outputs and a state.
      softmax_loss_function: see `sequence_loss_by_example`.
      per_example_loss: whether a loss is [batch], not a number.
      name: of the ops.

    Returns:
      The outputs of each bucket, and its loss.

    Raises:
      ValueError: for inputs, targets or weights that are fewer than the longest bucket has.
    """
    longest = [max(sizes) for sizes in zip(*buckets, strict=True)]
    given = [len(encoder_inputs), min(map(len, (targets, weights)))]
    if given[0] < longest[0] or given[1] < longest[1]:
        raise ValueError(f"steps must be at least {longest} for the longest bucket, got {given}")
    outputs, losses = [], []
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    everything = [*encoder_inputs, *decoder_inputs, *targets, *weights]
    with tf.name_scope(name, "model_with_buckets", everything):
        for number, (read, written) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:read], decoder_inputs[:written])
            outputs.append(found)
            losses.append(
                loss_of(
                    found,
                    targets[:written],
                    weights[:written],
                    softmax_loss_function=softmax_loss_function,
                )
            )
    return outputs, losses
