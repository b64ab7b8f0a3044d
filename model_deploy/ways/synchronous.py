"""`Synchronous`: one update of several replicas on parameter servers."""

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.gradients import GradientAndVariable, scale_gradient, values_of
from model_deploy.parameter_servers import (
    EarlyUpdates,
    StepCounter,
    SynchronousOptimizer,
    noted_reads_ahead,
    pack_gradients,
)
from model_deploy.updating import (
    Change,
    Condition,
    changes_by_parts,
    check_updates_wait,
    gate_op,
)
from model_deploy.ways.way import Training, Update, Way


class Synchronous(Way):
    """One update from the mean of the gradients of several replicas, which the chief makes."""

    is_synchronous = True

    def update(self, training: Training) -> Update:
        """Builds the step; a replica hands its gradients in, and waits for the update.

        Raises:
          ValueError: with `global_parts`, naming an op by which a replica changes a variable
            itself, or that changes a variable otherwise than by floats.
        """
        gradients = training.gradients(training.clones, training.losses)
        computed = [training.total_loss, *values_of(gradients)]
        moved = pack_gradients(
            self.config, self._weighed(gradients), after=training.total_loss, rows_go=False
        )
        counter = StepCounter(is_remote=self.config.num_ps_tasks > 0, others_update=False)
        if self.config.global_parts is None:
            update_ops, changes = [*training.ops_of_nobody(), *training.ops_of_parts()[0]], []
        else:
            update_ops, changes = [], self._changes(training, computed)
        optimizer = SynchronousOptimizer(
            training.optimizer,
            self.config.num_aggregated or 1,
            self.config.num_replicas,
            self.config.replica_id,
            clip_norm=training.clip_norm,
            wire_dtype=self.config.wire_dtype,
            after_update=training.functions,
            condition=training.condition,
            changes=changes,
            gate=functools.partial(gate_op, self.config) if self._has_parts else None,
            early=self._early(training, gradients),
        )
        # The loss comes first: its forward pass must not read variables half updated.
        is_remote = self.config.num_ps_tasks > 0
        with tf.control_dependencies([] if is_remote else [training.total_loss]):
            step = tf.train.get_global_step()
            applied = optimizer.apply_gradients(moved, global_step=step)
        if self._has_parts:
            check_updates_wait(applied, optimizer.token.op)
        condition = Condition(optimizer.was_updated if training.loss_scale else None)
        updates = condition.done([applied, *condition.hold_back(update_ops)])
        staleness, global_step = counter.after(updates)
        with tf.control_dependencies([global_step]):
            train_op = tf.identity(training.total_loss, name="train_op")
        return Update(
            train_op,
            gradients,
            computed=computed,
            exchanged=optimizer.handed_in,
            staleness=staleness,
            global_step=global_step,
        )

    def _early(
        self, training: Training, gradients: list[GradientAndVariable]
    ) -> EarlyUpdates | None:
        """Returns what is updated, and read, before the step ends; None for plain steps.

        Raises:
          ValueError: if gradients are clipped by their joint norm, for which all must be there.
        """
        if not self.config.rotate_steps:
            return None
        training.check_rotation()
        replicas = self.config.num_replicas, self.config.replica_id
        return EarlyUpdates(noted_reads_ahead(), gradients, *replicas)

    @property
    def _has_parts(self) -> bool:
        return self.config.global_parts is not None

    def _weighed(self, gradients: list[GradientAndVariable]) -> list[GradientAndVariable]:
        """Gradients whose mean over replicas counts each by its share of the batch."""
        factor = self.config.share * self.config.num_replicas
        if factor == 1:
            return gradients
        return [(scale_gradient(g, factor), variable) for g, variable in gradients]

    def _changes(self, training: Training, computed: Sequence[Any]) -> list[Change]:
        """This replica's terms of the means, over all parts, of the changes by update ops."""
        originals = {variable.op.name: variable for variable in tf.global_variables()}
        changes = []
        parts = training.weighed_parts(self.config)
        for variable, method, by_clone in changes_by_parts(parts, computed, originals):
            if not variable.dtype.base_dtype.is_floating:
                raise ValueError(
                    "with global_parts on parameter servers an update op must change floats, got "
                    f"{variable.op.name} of {variable.dtype.base_dtype.name}"
                )
            with tf.device(variable.device):
                terms = [
                    tf.reshape(t, variable.shape) for terms in by_clone.values() for t in terms
                ]
                value = tf.add_n(terms) * self.config.num_replicas
            changes.append(Change(variable, method, value))
        return changes

    @property
    def clones_in_update(self) -> int:
        return self.config.num_clones * (self.config.num_aggregated or 1)

    def __str__(self) -> str:
        aggregated = self.config.num_aggregated or 1
        backups = self.config.num_replicas - aggregated
        rotated = ", steps are rotated" if self.config.rotate_steps else ""
        return f"synchronous: an update of {aggregated} replica(s), {backups} backup(s){rotated}"
