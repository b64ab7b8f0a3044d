"""Summaries of losses and gradients for TensorBoard, all on the CPU."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.clones import claim_member, collect_members
from model_deploy.gradients import GradientAndVariable
from model_deploy.losses import Losses
from model_deploy.parts import Clone


def add_loss_summaries(clones: Sequence[Clone], losses: Losses, total_loss: Any) -> None:
    """Adds scalar summaries of the total loss and its parts to the `SUMMARIES` collection.

    The summaries belong to the first clone, so that a second deployment leaves them out.  The tag
    of the total is `total_loss_1`, as in TF-Slim, since an op `total_loss` exists.

    Args:
      clones: the clones.
      losses: the losses of `clones`, scalars.
      total_loss: a scalar.
    """
    scalars = {"total_loss": total_loss}
    if losses.regularization is not None:
        scalars["Losses/regularization_loss"] = losses.regularization
    if len(clones) > 1:
        for clone, loss in zip(clones, losses.clones, strict=True):
            if loss is not None:
                scalars[f"Losses/{clone.scope}clone_loss"] = loss
    for name, value in scalars.items():
        _claim(clones, tf.summary.scalar(name, value))


def add_gradient_summaries(
    clones: Sequence[Clone], gradients: Sequence[GradientAndVariable]
) -> None:
    """Adds a histogram and the norm of each gradient to the `SUMMARIES` collection.

    A sparse gradient is represented by its rows.

    Args:
      clones: the clones.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
        `IndexedSlices` over its rows, or None, which is left out.
    """
    for gradient, variable in gradients:
        if gradient is None:
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        name = variable.op.name
        _claim(clones, tf.summary.histogram(f"{name}/gradient", values))
        _claim(clones, tf.summary.scalar(f"{name}/gradient_norm", tf.linalg.global_norm([values])))


def merge_summaries(clones: Sequence[Clone], extra: Iterable[Any] = ()) -> Any:
    """Merges the summaries of the first clone, those that no clone made, and `extra`.

    Reads the `SUMMARIES` collection.

    Args:
      clones: the clones.
      extra: more summaries, serialized string scalars.

    Returns:
      A serialized string scalar named `summary_op/summary_op`, or None without summaries.
    """
    members = collect_members(tf.GraphKeys.SUMMARIES, clones)
    every = {tensor.name: tensor for tensor in (*members.clones[0], *members.shared, *extra)}
    if not every:
        return None
    return tf.summary.merge([every[name] for name in sorted(every)], name="summary_op")


def _claim(clones: Sequence[Clone], summary: Any) -> None:
    claim_member(clones[0], tf.GraphKeys.SUMMARIES, summary)
