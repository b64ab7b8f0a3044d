"""`EachClone`: each clone updates the shared variables at its own pace."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.clones import collect_members
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.keras_layers import update_after
from model_deploy.losses import gather_losses
from model_deploy.parameter_servers import StepCounter, pack_gradients
from model_deploy.parts import Clone, parts_by_clone
from model_deploy.updating import apply_changes, with_functions
from model_deploy.ways.way import CloneUpdate, Training, Update, Way


class EachClone(Way):
    """Makes one update per clone, from the clone's own losses."""

    def update(self, training: Training) -> Update:
        updates: list[CloneUpdate] = []
        shown: list[GradientAndVariable] = []
        of_clones: list[list[Any]] = []
        for group in parts_by_clone(training.clones):
            with tf.name_scope(training.clones[group[0]].scope):
                update, gradients = self._update_of_clone(training, group)
            updates.append(update)
            shown = shown or gradients
            of_clones.append(values_of(gradients))
        with tf.control_dependencies([update.train_op for update in updates]):
            train_op = tf.identity(training.total_loss, name="train_op")
        computed = [training.total_loss, *(value for each in of_clones for value in each)]
        return Update(train_op, shown, updates, computed=computed, clone_computed=of_clones)

    def _update_of_clone(
        self, training: Training, group: Sequence[int]
    ) -> tuple[CloneUpdate, list[GradientAndVariable]]:
        """Builds the update of the clone with parts at places `group`; returns gradients too."""
        members = collect_members(tf.GraphKeys.UPDATE_OPS, training.clones)
        parts = [training.clones[i] for i in group]
        regularization = training.regularization_losses
        if regularization is None:
            regularization = clone_regularization(training.clones, group)
        losses = gather_losses(parts, regularization)
        gradients = training.clip(training.gradients(parts, losses))
        loss = losses.total()
        collected = update_after(members.clones[group[0]], loss)
        own = [op for op in training.update_ops if not callable(op)]
        counter = StepCounter(is_remote=self.config.num_ps_tasks > 0)
        condition = training.condition(gradients)
        moved = pack_gradients(self.config, gradients)
        step_at_update = counter.at_update([loss, *values_of(moved)])
        global_step = tf.train.get_global_step()
        with tf.control_dependencies([step_at_update]):
            # Not by the optimizer: without a lock two clones may count the same step once.
            applied = apply_changes(
                training.optimizer,
                moved,
                condition,
                update_ops=[*own, *collected, *members.shared],
            )
        with tf.control_dependencies(applied), tf.device(global_step.device):
            counted = tf.assign_add(global_step, 1, use_locking=True)
        updates = with_functions([*applied, counted], training.functions)
        staleness, step_after = counter.after(condition.done(updates), step_at_update)
        with tf.control_dependencies([step_after]):
            train_op = tf.identity(loss, name="train_op")
        return CloneUpdate(train_op, staleness, step_after), gradients

    @property
    def clones_in_update(self) -> int:
        return 1

    def __str__(self) -> str:
        return "asynchronous: an update of each clone"


def clone_regularization(clones: Sequence[Clone], parts: Sequence[int]) -> list[Any]:
    """Returns the regularization losses that count in one clone's update.

    These are losses made by the clone itself, losses made outside of `model_fn`, and losses of
    shared variables, which only the first clone made, together with the variables.

    Reads the collection `REGULARIZATION_LOSSES`.

    Args:
      clones: all clones of the deployment.
      parts: places in `clones` of the clone's parts.

    Returns:
      Scalars.
    """
    members = collect_members(tf.GraphKeys.REGULARIZATION_LOSSES, clones)
    own = [loss for i in parts for loss in members.clones[i]]
    first = members.clones[0] if 0 not in parts else []
    # A loss of the first clone's activations has a counterpart in this clone; one of variables not.
    names = {_name_in_clone(loss, clones[i]) for i in parts for loss in members.clones[i]}
    of_variables = [loss for loss in first if _name_in_clone(loss, clones[0]) not in names]
    return [*of_variables, *own, *members.shared]


def _name_in_clone(item: Any, clone: Clone) -> str:
    return str(item.name).removeprefix(clone.scope)
