"""Clones that update the shared variables each at its own pace."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.clones import Clone, collect_members
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.parameter_servers import StepCounter
from model_deploy.updating import AlwaysOpen, ops_after


class CloneUpdate(NamedTuple):
    """How one clone trains by itself, as an asynchronous replica would.

    Attributes:
      train_op: computes the clone's gradients, updates the variables, adds 1 to the
        global step, and returns the clone's loss: a scalar.
      staleness: how many updates others made between the start of this clone's
        step and its update, an int64 scalar; fetch it together with `train_op`.
      global_step: number of updates after this one, those that others made meanwhile
        included, an int64 scalar; fetch it together with `train_op`.
    """

    train_op: Any
    staleness: Any
    global_step: Any


def clone_regularization(clones: Sequence[Clone], parts: Sequence[int]) -> list[Any]:
    """The regularization losses that count in one clone's update.

    Those that this clone made, those made outside of `model_fn`, and those of shared
    variables, which only the first clone made, when it made the variables.

    Reads the collection `REGULARIZATION_LOSSES`.

    Args:
      clones: all clones of the deployment.
      parts: places in `clones` of the one clone; several where it has parts.

    Returns:
      Scalars.
    """
    members = collect_members(tf.GraphKeys.REGULARIZATION_LOSSES, clones)
    own = [loss for i in parts for loss in members.clones[i]]
    first = members.clones[0] if 0 not in parts else []
    # A loss of the first clone's activations has a counterpart among the clone's own.
    names = {_name_in_clone(loss, clones[i]) for i in parts for loss in members.clones[i]}
    of_variables = [loss for loss in first if _name_in_clone(loss, clones[0]) not in names]
    return [*of_variables, *own, *members.shared]


def update_by_clone(
    gradients: Sequence[GradientAndVariable],
    loss: Any,
    optimizer: Any,
    update_ops: Sequence[Any],
    *,
    is_remote: bool,
    guard: AlwaysOpen,
) -> CloneUpdate:
    """Makes an update of one clone's own gradients.

    Args:
      gradients: `(gradient, variable)` pairs of the shared variables; a gradient has the
        variable's shape, or is an `IndexedSlices` over its rows.
      loss: the clone's loss, a scalar.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      update_ops: ops, or functions that make ops, to run with each update.
      is_remote: whether the variables are on parameter servers.
      guard: lets the update be made, or not.
    """
    counter = StepCounter(is_remote=is_remote)
    step_at_update = counter.at_update([loss, *values_of(gradients)])
    with tf.control_dependencies([step_at_update]), guard.passed():
        # Without the step: optimizers do not lock it, and two clones would count once.
        applied = optimizer.apply_gradients(gradients)
    global_step = tf.train.get_global_step()
    with tf.control_dependencies([applied]), tf.device(global_step.device):
        counted = tf.assign_add(global_step, 1, use_locking=True)
    updates = [applied, counted, *guard.held([op for op in update_ops if not callable(op)])]
    updates += ops_after(updates, filter(callable, update_ops))
    staleness, step_after = counter.after(guard.done(updates), step_at_update)
    with tf.control_dependencies([step_after]):
        return CloneUpdate(tf.identity(loss, name="train_op"), staleness, step_after)


def _name_in_clone(item: Any, clone: Clone) -> str:
    return str(item.name).removeprefix(clone.scope)
