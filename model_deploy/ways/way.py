"""`Way`: how the clones and replicas of a deployment update the variables; one subclass per way."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gradients as gradients_lib
from model_deploy import placement
from model_deploy.clone_gradients import compute_clone_gradients
from model_deploy.clones import collect_members
from model_deploy.config import DeploymentConfig
from model_deploy.feature import join
from model_deploy.gradients import GradientAndVariable
from model_deploy.keras_layers import update_after
from model_deploy.losses import Losses
from model_deploy.parts import Clone, parts_by_clone
from model_deploy.rotation import Rest
from model_deploy.updating import (
    Condition,
    LossScale,
    PartUpdates,
    part_updates,
    split_functions,
)


class CloneUpdate(NamedTuple):
    """The train op of one asynchronous clone.

    Attributes:
      train_op: computes the clone's gradients, updates the variables, adds 1 to the
        global step, and returns the clone's loss: a scalar.
      staleness: how many updates other clones and replicas made between the start of this
        clone's step and its update, an int64 scalar; fetch it together with `train_op`.
      global_step: the global step after this update, an int64 scalar; fetch it together with
        `train_op`.
    """

    train_op: Any
    staleness: Any
    global_step: Any


class Update(NamedTuple):
    """The ops and tensors that a way to train built.

    Attributes:
      train_op: makes a step and returns the total loss, a scalar; None without an optimizer.
      gradients: `(gradient, variable)` pairs for summaries, see `gradients_of_clones`; with
        all-reduce those of the first clone, some of which may be None.
      clone_updates: one `CloneUpdate` per clone if clones are asynchronous.
      copies_difference: see `DeployedModel`, a float64 scalar or None.
      computed: the losses and gradients of the step, tensors of any shapes.
      clone_computed: the gradients of each clone if clones are asynchronous.
      exchanged: ops or tensors that are there when this replica's part in a common update is
        done: its gradients are handed in, or the sums have arrived; () for one of its own.
      staleness: see `DeployedModel`, an int64 scalar or None.
      global_step: see `DeployedModel`, an int64 scalar or None.
      rest: what a rotated step leaves to the next one; None if nothing is left.
    """

    train_op: Any = None
    gradients: Sequence[GradientAndVariable] = ()
    clone_updates: Sequence[CloneUpdate] = ()
    copies_difference: Any = None
    computed: Sequence[Any] = ()
    clone_computed: Sequence[Sequence[Any]] = ()
    exchanged: Sequence[Any] = ()
    staleness: Any = None
    global_step: Any = None
    rest: Rest | None = None


class Training(NamedTuple):
    """A built model, its losses and optimizer, and `deploy`'s arguments that shape an update.

    Attributes:
      clones: the clones of the deployment.
      losses: their losses, scalars.
      total_loss: the sum of the losses, a scalar.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      variables_to_train: variables of any shapes; None for all trainable ones.
      clip_norm: largest joint L2 norm of the gradients, or None.
      update_ops: ops, or functions that make ops, to run in each step.
      regularization_losses: scalars that replace the graph's; None for the graph's.
      loss_scale: the loss scale; None without loss scaling.
    """

    clones: Sequence[Clone]
    losses: Losses
    total_loss: Any
    optimizer: Any
    variables_to_train: Sequence[Any] | None
    clip_norm: float | None
    update_ops: Sequence[Any]
    regularization_losses: Sequence[Any] | None
    loss_scale: LossScale | None

    @property
    def gradient_source(self) -> Any:
        """Has the `compute_gradients` to call: the optimizer, or its wrapper for loss scaling."""
        return self.loss_scale.scaling(self.optimizer) if self.loss_scale else self.optimizer

    def condition(
        self,
        gradients: Sequence[GradientAndVariable],
        first: Sequence[Any] = (),
        *,
        adjusts: bool = True,
    ) -> Condition:
        """Returns the condition of an update: after `first` and, with loss scaling, if finite.

        Args:
          gradients: `(gradient, variable)` pairs of the update.
          first: ops, or tensors of any shapes, that the update waits for.
          adjusts: whether the update adjusts the loss scale.
        """
        if self.loss_scale is None:
            return Condition(first=first)
        return self.loss_scale.condition(gradients, first, adjusts=adjusts)

    def gradients(self, clones: Sequence[Clone], losses: Losses) -> list[GradientAndVariable]:
        """Returns the sum of the clones' gradients, of the variables' shapes or as rows of them."""
        return gradients_of_clones(
            clones, losses, self.gradient_source, {"var_list": self.variables_to_train}
        )

    def clip(self, gradients: list[GradientAndVariable]) -> list[GradientAndVariable]:
        """Clips gradients to `clip_norm`, if given; shapes stay."""
        if self.clip_norm is None:
            return gradients
        return gradients_lib.clip_by_global_norm(gradients, self.clip_norm)

    def check_rotation(self) -> None:
        """Checks that an update may begin before all gradients are known.

        Raises:
          ValueError: if gradients are clipped by their joint norm.
        """
        if self.clip_norm is not None:
            raise ValueError(f"clip_norm must be None with rotate_steps=True, got {self.clip_norm}")

    @property
    def functions(self) -> list[Callable[[], Any]]:
        """The update ops given as functions, which are called after the update."""
        return split_functions(self.update_ops)[1]

    def ops_of_parts(self) -> list[list[Any]]:
        """Returns the update ops of each part; those of Keras layers wait for the loss."""
        members = collect_members(tf.GraphKeys.UPDATE_OPS, self.clones)
        return [list(update_after(ops, self.total_loss)) for ops in members.clones]

    def ops_of_nobody(self) -> list[Any]:
        """Returns update ops that no clone made: `deploy`'s arguments and others in the graph."""
        ops, _ = split_functions(self.update_ops)
        return [*ops, *collect_members(tf.GraphKeys.UPDATE_OPS, self.clones).shared]

    def weighed_parts(self, config: DeploymentConfig) -> list[PartUpdates]:
        """Returns the update ops of all parts, each with its weight in the global mean."""
        groups = parts_by_clone(self.clones)
        return part_updates(config, groups, self.ops_of_parts(), self.ops_of_nobody())


class Way:
    """How the clones and replicas of a deployment make an update of the variables.

    Args:
      config: the deployment.

    Attributes:
      is_synchronous: whether all replicas make each step together.
      owns_variables: whether each replica has variables of its own.
    """

    is_synchronous = False
    owns_variables = False

    def __init__(self, config: DeploymentConfig) -> None:
        self.config = config

    def around_model(self, model_fn: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the function that clones call in place of `model_fn`."""
        return model_fn

    def state_device(self) -> Any:
        """Returns the device, or device function, of the global step and of the loss scale."""
        return self.config.variables_device()

    def update(self, training: Training) -> Update:
        """Builds the step that updates the variables.

        Raises:
          ValueError: if no variable has a gradient.
        """
        raise NotImplementedError

    def make_fetchable(self, op: Any) -> None:
        """Makes an op, such as the summary op, safe to fetch without the train op."""

    def set_up_session(self, proto: Any) -> None:
        """Adds the options that sessions and servers need to a `tf.ConfigProto`."""

    @property
    def clones_in_update(self) -> int:
        """How many clones, of all replicas, contribute to one update of the variables."""
        return self.config.num_clones

    def __str__(self) -> str:
        """The way in a few words, for the banner."""
        raise NotImplementedError

    def describe_wire(self) -> str:
        """Returns in words which values cross process borders in `wire_precision`."""
        return "gradients and trained variables"


def gradients_of_clones(
    clones: Sequence[Clone], losses: Losses, source: Any, kwargs: Any
) -> list[GradientAndVariable]:
    """Returns the sum of the clones' gradients, see `deployment.optimize_clones`.

    Args:
      clones: the clones.
      losses: the losses of `clones`, scalars.
      source: an optimizer of TensorFlow 1, or an object with the same `compute_gradients` method.
      kwargs: keyword arguments of `compute_gradients`.

    Returns:
      `(gradient, variable)` pairs; a gradient has the variable's shape, or is an
      `IndexedSlices` over its rows.

    Raises:
      ValueError: if no variable has a gradient.
    """
    clone_gradients = compute_clone_gradients(clones, losses, source, kwargs)
    join(clones)
    part = clones[0].part if clones else None
    devices = part.config.sum_devices() if part is not None else []
    device_of = placement.LeastBytes(devices) if devices else None
    grads = gradients_lib.sum_gradients(clone_gradients, device_of)
    if not grads:
        raise ValueError("the loss must depend on at least one variable to train, got none")
    return grads
