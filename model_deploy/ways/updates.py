"""The train op of a deployment, by the ways to train: together, each clone, all-reduce."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import all_reduce, placement
from model_deploy import gradients as gradients_lib
from model_deploy.all_reduce import VariableCopies
from model_deploy.clone_gradients import compute_clone_gradients
from model_deploy.clones import (
    Clone,
    collect_members,
    join_batch_norms,
    origin_of,
    parts_by_clone,
)
from model_deploy.collectives import collectives_of
from model_deploy.config import DeploymentConfig
from model_deploy.gradients import GradientAndVariable
from model_deploy.keras_layers import update_after
from model_deploy.losses import Losses, gather_losses
from model_deploy.parameter_servers import (
    SharedUpdate,
    StepCounter,
    SynchronousOptimizer,
    pack_gradients,
)
from model_deploy.updating import (
    AlwaysOpen,
    Guard,
    LossScale,
    PartUpdates,
    changes_by_parts,
    check_updates_wait,
    gate_op,
    ops_after,
    part_updates,
)
from model_deploy.ways import each_clone
from model_deploy.ways.each_clone import CloneUpdate


class Plan(NamedTuple):
    """What there is to train, and how.

    Attributes:
      config: the deployment.
      clones: its clones.
      losses: their losses, scalars.
      total_loss: the sum of the losses, a scalar.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      variables_to_train: variables of any shapes; None for all trainable ones.
      clip_norm: largest joint L2 norm of the gradients, or None.
      update_ops: ops, or functions that make ops, to run in each step.
      regularization_losses: scalars in place of the graph's; None for these.
      replicas_to_aggregate: how many replicas make an update; None if each makes its own.
      loss_scale: scales losses; None without.
    """

    config: DeploymentConfig
    clones: list[Clone]
    losses: Losses
    total_loss: Any
    optimizer: Any
    variables_to_train: Sequence[Any] | None
    clip_norm: float | None
    update_ops: Sequence[Any]
    regularization_losses: Sequence[Any] | None
    replicas_to_aggregate: int | None
    loss_scale: LossScale | None

    @property
    def gradients_by(self) -> Any:
        """What has `compute_gradients`: the optimizer, or what scales its losses."""
        return self.loss_scale.scaling(self.optimizer) if self.loss_scale else self.optimizer

    def guard(
        self, gradients: Sequence[GradientAndVariable], *, adjusts: bool = True
    ) -> AlwaysOpen:
        """What lets an update be made only if its gradients are finite, where losses are scaled."""
        if self.loss_scale is None:
            return AlwaysOpen()
        return self.loss_scale.guard(gradients, adjusts=adjusts)

    def gradients(self, clones: Sequence[Clone], losses: Losses) -> list[GradientAndVariable]:
        """The sum of the clones' gradients, of the variables' shapes or as rows of them."""
        return gradients_of_clones(
            clones, losses, self.gradients_by, {"var_list": self.variables_to_train}
        )

    def clip(self, gradients: list[GradientAndVariable]) -> list[GradientAndVariable]:
        """The gradients, clipped if that was asked for; their shapes stay."""
        if self.clip_norm is None:
            return gradients
        return gradients_lib.clip_by_global_norm(gradients, self.clip_norm)


class Update(NamedTuple):
    """What a way to train makes.

    Attributes:
      train_op: makes a step and returns the total loss, a scalar; None without an optimizer.
      gradients: `(gradient, variable)` pairs to show in summaries, see `gradients_of_clones`;
        with all-reduce the first clone's own, of which some may be None.
      clone_updates: with asynchronous clones one `CloneUpdate` for each.
      copies_difference: with all-reduce, as that of `DeployedModel`, a float64 scalar.
      computed: the losses and gradients that need the variables' values, tensors of any shapes.
      staleness: as that of `DeployedModel`, an int64 scalar or None.
      global_step: as that of `DeployedModel`, an int64 scalar or None.
    """

    train_op: Any = None
    gradients: Sequence[GradientAndVariable] = ()
    clone_updates: Sequence[CloneUpdate] = ()
    copies_difference: Any = None
    computed: Sequence[Any] = ()
    staleness: Any = None
    global_step: Any = None


def update_together(plan: Plan) -> Update:
    """One update from the sum of the clones' gradients; or from those of several replicas."""
    is_shared = plan.replicas_to_aggregate is not None
    parts: list[PartUpdates] = []
    if plan.config.global_parts is None:
        collected = update_after(_collected_update_ops(plan.clones), plan.total_loss)
        update_ops = [*plan.update_ops, *collected]
    else:
        parts = _updates_of_parts(plan)
        update_ops = list(filter(callable, plan.update_ops))
    gradients = plan.gradients(plan.clones, plan.losses)
    if not is_shared:  # else the mean of the replicas is clipped
        gradients = plan.clip(gradients)
    # The loss comes first: its forward pass must not read variables half updated.
    moved = pack_gradients(
        plan.config,
        _weighed(plan.config, gradients),
        after=plan.total_loss,
        rows_go=not is_shared,
    )
    is_remote = plan.config.num_ps_tasks > 0
    others_update = plan.config.num_replicas > 1 and not is_shared
    counter = StepCounter(is_remote=is_remote, others_update=others_update)
    with tf.control_dependencies([] if is_remote else [plan.total_loss]):
        if is_shared:
            computed = [plan.total_loss, *gradients_lib.values_of(gradients)]
            shared = _shared_updates(plan.config, parts, computed)
            updates, guard = _apply_with_others(plan, moved, update_ops, shared)
        else:
            guard = plan.guard(gradients)
            with guard.passed():
                step = tf.train.get_global_step()
                applied = plan.optimizer.apply_gradients(moved, global_step=step)
            updates = _with_functions([applied, *guard.held(update_ops)])
    staleness, global_step = counter.after(guard.done(updates))
    with tf.control_dependencies([global_step]):
        train_op = tf.identity(plan.total_loss, name="train_op")
    computed = [plan.total_loss, *gradients_lib.values_of(gradients)]
    return Update(
        train_op, gradients, computed=computed, staleness=staleness, global_step=global_step
    )


def _apply_with_others(
    plan: Plan,
    gradients: list[GradientAndVariable],
    update_ops: Sequence[Any],
    shared_updates: Sequence[SharedUpdate],
) -> tuple[list[Any], AlwaysOpen]:
    """Hands in the gradients for the update of several replicas, and runs this one's update ops.

    Args:
      plan: what there is to train.
      gradients: `(gradient, variable)` pairs of the variables' shapes, or as rows of them.
      update_ops: ops, which each replica runs, and functions, whose ops run with the update.
      shared_updates: with `global_parts`, those of variables that are not trained.

    Returns:
      The ops of the update, and what guards those of this replica.

    Raises:
      ValueError: with `global_parts`, naming an op by which a replica changes a variable itself.
    """
    has_parts = plan.config.global_parts is not None
    optimizer = SynchronousOptimizer(
        plan.optimizer,
        plan.replicas_to_aggregate or 1,
        plan.config.num_replicas,
        plan.config.replica_id,
        clip_norm=plan.clip_norm,
        wire_dtype=plan.config.wire_dtype,
        after_update=[op for op in update_ops if callable(op)],
        guard=plan.guard,
        shared_updates=shared_updates,
        gate=functools.partial(gate_op, plan.config) if has_parts else None,
    )
    applied = optimizer.apply_gradients(gradients, global_step=tf.train.get_global_step())
    if has_parts:
        check_updates_wait(applied, optimizer.token.op)
    guard = Guard(optimizer.was_updated) if plan.loss_scale else AlwaysOpen()
    return [applied, *guard.held([op for op in update_ops if not callable(op)])], guard


def _updates_of_parts(plan: Plan) -> list[PartUpdates]:
    """The update ops of all parts of this replica, and of what it does once, without functions."""
    members = collect_members(tf.GraphKeys.UPDATE_OPS, plan.clones)
    once = [op for op in (*plan.update_ops, *members.shared) if not callable(op)]
    each = [update_after(of_part, plan.total_loss) for of_part in members.clones]
    return part_updates(plan.config, parts_by_clone(plan.clones), each, once)


def _weighed(
    config: DeploymentConfig, gradients: list[GradientAndVariable]
) -> list[GradientAndVariable]:
    """Gradients whose mean over replicas counts each by its share of the batch; shapes stay."""
    factor = config.share * config.num_replicas
    if factor == 1:
        return gradients
    scale = gradients_lib.scale_gradient
    return [(g if g is None else scale(g, factor), variable) for g, variable in gradients]


def _shared_updates(
    config: DeploymentConfig, parts: Sequence[PartUpdates], computed: Sequence[Any]
) -> list[SharedUpdate]:
    """What this replica gives to the mean of what update ops do over all parts.

    Raises:
      ValueError: as `changes_by_parts`; for an update op of integers, which has no mean.
    """
    originals = {variable.op.name: variable for variable in tf.global_variables()}
    updates = []
    for variable, method, by_clone in changes_by_parts(parts, computed, originals):
        if not variable.dtype.base_dtype.is_floating:
            raise ValueError(
                "with global_parts on parameter servers an update op must change floats, got "
                f"{variable.op.name} of {variable.dtype.base_dtype.name}"
            )
        with tf.device(variable.device):
            terms = [tf.reshape(t, variable.shape) for terms in by_clone.values() for t in terms]
            operand = tf.add_n(terms) * config.num_replicas
        updates.append(SharedUpdate(variable, method, operand))
    return updates


def update_by_each_clone(plan: Plan) -> Update:
    """An update for each clone, from its own losses."""
    members = collect_members(tf.GraphKeys.UPDATE_OPS, plan.clones)
    updates: list[CloneUpdate] = []
    shown: list[GradientAndVariable] = []
    computed = [plan.total_loss]
    for group in parts_by_clone(plan.clones):
        parts = [plan.clones[i] for i in group]
        regularization = plan.regularization_losses
        if regularization is None:
            regularization = each_clone.clone_regularization(plan.clones, group)
        with tf.name_scope(parts[0].scope):
            losses = gather_losses(parts, regularization)
            gradients = plan.clip(plan.gradients(parts, losses))
            total_loss = losses.total()
            collected = update_after(members.clones[group[0]], total_loss)
            update_ops = [*plan.update_ops, *collected, *members.shared]
            guard = plan.guard(gradients)
            updates.append(
                each_clone.update_by_clone(
                    pack_gradients(plan.config, gradients),
                    total_loss,
                    plan.optimizer,
                    update_ops,
                    is_remote=plan.config.num_ps_tasks > 0,
                    guard=guard,
                )
            )
        shown = shown or gradients
        computed += gradients_lib.values_of(gradients)
    with tf.control_dependencies([update.train_op for update in updates]):
        train_op = tf.identity(plan.total_loss, name="train_op")
    return Update(train_op, shown, updates, computed=computed)


def update_by_all_reduce(plan: Plan, copies: VariableCopies) -> Update:
    """The same update of every clone's copies, from the gradients of all replicas.

    Raises:
      ValueError: as `VariableCopies.check_own_variables` and `all_reduce.apply_gradients`.
    """
    config, clones = plan.config, plan.clones
    trained = plan.variables_to_train or tf.trainable_variables()
    groups = parts_by_clone(clones)
    terms = [[t for i in group for t in plan.losses.terms_of_clone(i)] for group in groups]
    copies.check_own_variables(terms, trained)
    trained = [v for v in trained if copies.of_clone(v, config.num_clones - 1) is not None]
    clone_gradients = []
    for i, group in enumerate(groups):
        own = [copies.of_clone(variable, i) for variable in trained]
        gradients = [(None, variable) for variable in own]
        if terms[i] and own:
            parts, losses = [clones[j] for j in group], plan.losses.of_clones(group)
            [gradients] = compute_clone_gradients(
                parts, losses, plan.gradients_by, {"var_list": own}
            )
        clone_gradients.append(gradients)
    collectives = collectives_of(config, "step")
    join_batch_norms(clones, collectives)
    members = collect_members(tf.GraphKeys.UPDATE_OPS, clones)
    once = [op for op in (*plan.update_ops, *members.shared) if not callable(op)]
    each = [update_after(of_part, plan.total_loss) for of_part in members.clones]
    step = all_reduce.apply_gradients(
        config,
        copies,
        clone_gradients,
        plan.optimizer,
        plan.total_loss,
        clip_norm=plan.clip_norm,
        guard=plan.guard,
        collectives=collectives,
        part_updates=part_updates(config, groups, each, once),
    )
    functions = [op for op in plan.update_ops if callable(op)]
    if config.global_parts is None:
        firsts = [list(each[group[0]]) for group in groups]
        firsts[0] += once
        done = [
            [applied, *guard.held(own)]
            for applied, guard, own in zip(step.applied, step.guards, firsts, strict=True)
        ]
        updated = [all_reduce.average_state(step, copies, done)]
    else:
        updated = [*step.applied, *(op for of_clone in step.part_updates for op in of_clone)]
    updates = _with_functions([*updated, *functions])
    with tf.control_dependencies(step.guards[0].done(updates)):
        train_op = tf.identity(step.loss, name="train_op")
    if step.gate is not None:
        check_updates_wait(train_op, step.gate)
    all_reduce.add_start_hook(config, copies)
    difference = all_reduce.copies_difference(config, copies)
    return Update(train_op, clone_gradients[0], copies_difference=difference)


def gradients_of_clones(
    clones: Sequence[Clone], losses: Losses, optimizer: Any, kwargs: Mapping[str, Any]
) -> list[GradientAndVariable]:
    """The sum of the clones' gradients, see `deployment.optimize_clones`.

    Args:
      clones: the clones.
      losses: their losses, scalars.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      kwargs: for its `compute_gradients`.

    Returns:
      `(gradient, variable)` pairs; a gradient has the variable's shape, or is an
      `IndexedSlices` over its rows.

    Raises:
      ValueError: if no variable has a gradient.
    """
    clone_gradients = compute_clone_gradients(clones, losses, optimizer, kwargs)
    join_batch_norms(clones)
    origin = origin_of(clones[0]) if clones else None
    devices = origin.config.sum_devices() if origin is not None else []
    device_of = placement.LeastBytes(devices) if devices else None
    grads = gradients_lib.sum_gradients(clone_gradients, device_of)
    if not grads:
        raise ValueError("the loss must depend on at least one variable to train, got none")
    return grads


def _collected_update_ops(clones: Sequence[Clone]) -> list[Any]:
    members = collect_members(tf.GraphKeys.UPDATE_OPS, clones)
    return [*members.clones[0], *members.shared]


def _with_functions(update_ops: Sequence[Any]) -> list[Any]:
    """The ops, and those that functions among them make, which come after the others."""
    updates = [op for op in update_ops if not callable(op)]
    return updates + ops_after(updates, filter(callable, update_ops))
