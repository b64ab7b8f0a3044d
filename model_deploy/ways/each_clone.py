"""`EachClone`: each clone updates the shared variables at its own pace."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.clones import collect_members
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.keras_layers import update_after
from model_deploy.losses import gather_losses
from model_deploy.parameter_servers import StepCounter, pack_gradients
from model_deploy.parts import parts_by_clone
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
        losses = gather_losses(parts, training.regularization_losses, all_clones=training.clones)
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
