"""`AllReduce`: each clone has a copy of the variables; all make the same update from all gradients.

In a step each clone computes gradients at its own copy of the variables.  TensorFlow's collective
ops sum them over all clones of all replicas, and each clone applies the sum to its copy.  There is
no parameter server.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import gpus
from model_deploy import gradients as gradients_lib
from model_deploy.all_reduce import (
    VariableCopies,
    add_start_hook,
    average_state,
    copies_difference,
    mean_changes,
    set_up_session,
)
from model_deploy.clone_gradients import compute_clone_gradients
from model_deploy.collectives import (
    Collectives,
    Left,
    add_missing_members,
    collectives_of,
    exchange_gradients,
)
from model_deploy.config import DeploymentConfig
from model_deploy.feature import join
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.parts import parts_by_clone
from model_deploy.rotation import rotate
from model_deploy.updating import (
    Change,
    Condition,
    apply_changes,
    check_updates_wait,
    gate_op,
    with_functions,
)
from model_deploy.ways.way import Training, Update, Way

# For each clone of this process the `(gradient, variable)` pairs of its copies.
_ByClone = Sequence[Sequence[GradientAndVariable]]


class AllReduce(Way):
    """Updates each clone's copies of the variables alike, from the gradients of all replicas."""

    is_synchronous = True
    owns_variables = True

    def __init__(self, config: DeploymentConfig) -> None:
        super().__init__(config)
        self._has_parts = config.global_parts is not None

    def around_model(self, model_fn: Callable[..., Any]) -> Callable[..., Any]:
        self._copies = VariableCopies(self.config)
        return self._copies.give_each_clone_its_own(model_fn)

    def state_device(self) -> Any:
        return self.config.optimizer_device()

    def update(self, training: Training) -> Update:
        """Builds the step; the gradients of sparse variables stay sparse.

        Raises:
          ValueError: if there is no gradient, or the optimizer's variables differ by clone; as
            `VariableCopies.check_own_variables` and `mean_changes`.
        """
        gradients = self._gradients(training)
        collectives = collectives_of(self.config, "step")
        join(training.clones, collectives)
        left = self._left(training)
        summed, loss = self._exchanged(collectives, gradients, training.total_loss, left)
        arrived = [loss, *(value for of_clone in summed for value in values_of(of_clone))]
        if training.clip_norm is not None:
            summed = collectives.on_devices(lambda i: training.clip(summed[i]))
        # The loss comes first: its forward pass must not read variables half updated.
        first = training.total_loss
        changes: list[list[Change]] = [[] for _ in summed]
        if self._has_parts:
            computed = [training.total_loss, *(g for of_clone in gradients for g, _ in of_clone)]
            parts = training.weighed_parts(self.config)
            changes = mean_changes(self._copies, collectives, parts, computed)
            first = gate_op(self.config, [training.total_loss, loss, collectives.done()])
        conditions = self._conditions(training, summed, first)
        applied = self._applied(training, summed, conditions, changes)
        if self._has_parts:
            updates = [op for of_clone in applied for op in of_clone]
        else:
            updates = [average_state(collectives, self._copies, applied)]
        updates = conditions[0].done(with_functions(updates, training.functions))
        rotated = rotate(self.config, left.ops if left else [], updates, loss)
        if left is not None and rotated.rest is None:
            logging.warning("rotate_steps leaves nothing: all gradients travel together")
        updates = rotated.updates
        arrived = [value for value in arrived if value.op not in rotated.late]
        with tf.control_dependencies(updates):
            train_op = tf.identity(loss, name="train_op")
        global_step = None
        if rotated.rest is not None:
            with tf.control_dependencies([train_op]):  # the rest of this step counts it
                global_step = tf.train.get_global_step().read_value() + 1
        if self._has_parts:
            check_updates_wait(train_op, first)
        add_start_hook(self.config, self._copies)
        difference = copies_difference(self.config, self._copies)
        computed = [value for of_clone in gradients for value in values_of(of_clone)]
        return Update(
            train_op,
            gradients[0],
            copies_difference=difference,
            computed=[training.total_loss, *computed],
            exchanged=arrived,
            global_step=global_step,
            rest=rotated.rest,
        )

    def _left(self, training: Training) -> Left | None:
        """Returns what is to be left to the next run of the session; None if nothing is to be.

        Raises:
          ValueError: if gradients are clipped by their joint norm, for which all must be there.
        """
        if not self.config.rotate_steps:
            return None
        training.check_rotation()
        # One at a time: of packs that share a link all arrive late, also that of the first layer.
        return Left(collectives_of(self.config, "left", lanes=1))

    def _gradients(self, training: Training) -> list[list[GradientAndVariable]]:
        """Returns for each clone the gradients of its own losses at its own copies."""
        clones, copies = training.clones, self._copies
        trained = training.variables_to_train or tf.trainable_variables()
        groups = parts_by_clone(clones)
        terms = [[t for i in group for t in training.losses.terms_of_clone(i)] for group in groups]
        copies.check_own_variables(terms, trained)
        last = self.config.num_clones - 1
        trained = [variable for variable in trained if copies.of_clone(variable, last) is not None]
        found = []
        for i, group in enumerate(groups):
            own = [copies.of_clone(variable, i) for variable in trained]
            gradients: list[GradientAndVariable] = [(None, variable) for variable in own]
            if terms[i] and own:
                parts, losses = [clones[j] for j in group], training.losses.of_clones(group)
                source = training.gradient_source
                with copies.collections_of(i):
                    [gradients] = compute_clone_gradients(parts, losses, source, {"var_list": own})
            found.append(gradients)
        return found

    def _exchanged(
        self,
        collectives: Collectives,
        gradients: _ByClone,
        total_loss: Any,
        left: Left | None,
    ) -> tuple[list[list[GradientAndVariable]], Any]:
        """Averages gradients and losses over replicas, weighted by their shares of the batch."""
        scale = 1 / self.config.num_replicas
        if self._has_parts:
            scale, share = 1.0, self.config.share
            total_loss = total_loss * share
            gradients = collectives.on_devices(
                lambda i: [
                    (None if g is None else gradients_lib.scale_gradient(g, share), v)
                    for g, v in gradients[i]
                ]
            )
        wire_dtype = self.config.wire_dtype
        return exchange_gradients(collectives, gradients, total_loss, scale, wire_dtype, rest=left)

    def _conditions(self, training: Training, gradients: _ByClone, first: Any) -> list[Condition]:
        """Returns each clone's condition; all agree, and the first adjusts the loss scale."""
        conditions = []
        for i, of_clone in enumerate(gradients):
            with tf.device(gpus.placing(self.config.clone_device(i))):
                conditions.append(training.condition(of_clone, [first], adjusts=i == 0))
        return conditions

    def _applied(
        self,
        training: Training,
        gradients: _ByClone,
        conditions: Sequence[Condition],
        changes: Sequence[Sequence[Change]],
    ) -> list[list[Any]]:
        """Returns for each clone the ops that update its copies."""
        groups = parts_by_clone(training.clones)
        update_ops: list[list[Any]] = [[] for _ in groups]
        if not self._has_parts:  # else `changes` holds the means of the update ops
            of_parts = training.ops_of_parts()
            update_ops = [of_parts[group[0]] for group in groups]
            update_ops[0] += training.ops_of_nobody()
        applied = []
        made: list[Any] = []
        for i, of_clone in enumerate(gradients):
            with self._copies.optimizer_variables(i, made):
                ops = apply_changes(
                    self._copies.optimizer_of_clone(training.optimizer, i),
                    of_clone,
                    conditions[i],
                    global_step=tf.train.get_global_step() if i == 0 else None,
                    changes=changes[i],
                    update_ops=update_ops[i],
                )
            applied.append(ops)
        return applied

    def make_fetchable(self, op: Any) -> None:
        add_missing_members(op)

    def set_up_session(self, proto: Any) -> None:
        set_up_session(self.config, proto)

    @property
    def clones_in_update(self) -> int:
        return self.config.num_clones * self.config.num_replicas

    def __str__(self) -> str:
        rotated = ", steps are rotated" if self.config.rotate_steps else ""
        return f"all-reduce: each clone has its own copy of the variables{rotated}"

    def describe_wire(self) -> str:
        return "gradients"
