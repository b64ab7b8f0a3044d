"""Training by all-reduce: every clone has its own variables, and gets everyone's gradients.

In a step each clone computes its gradients from its own copy of the variables.
TensorFlow's collective ops hand the sum over all clones of all replicas to each of
them, and each makes the same update of its copy.  There is no parameter server.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy import gradients as gradients_lib
from model_deploy.all_reduce.start import DTYPES, assign, numeric_variables
from model_deploy.all_reduce.state_updates import StateUpdate, apply_updates, mean_updates
from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import Collectives, collectives_of, exchange_gradients
from model_deploy.config import DeploymentConfig
from model_deploy.gradients import GradientAndVariable
from model_deploy.updating import AlwaysOpen, PartUpdates, gate_op


class Step(NamedTuple):
    """What a step by all-reduce needs, and gives.

    Attributes:
      applied: for each clone the op that updates its variables.
      loss: mean of the total losses of all replicas, a scalar, the same everywhere.
      collectives: the collective ops of the step.
      guards: for each clone what lets its update be made, or not: all do the same.
      part_updates: with `global_parts`, for each clone the ops that make the mean of the updates
        of parts.
      gate: with `global_parts`, the op that all updates wait for, see `gates`; else None.
    """

    applied: list[Any]
    loss: Any
    collectives: Collectives
    guards: list[AlwaysOpen]
    part_updates: list[list[Any]]
    gate: Any


def apply_gradients(
    config: DeploymentConfig,
    copies: VariableCopies,
    clone_gradients: Sequence[Sequence[GradientAndVariable]],
    optimizer: Any,
    total_loss: Any,
    *,
    clip_norm: float | None = None,
    guard: Callable[..., AlwaysOpen] = lambda gradients, adjusts: AlwaysOpen(),
    collectives: Collectives | None = None,
    part_updates: Sequence[PartUpdates] = (),
) -> Step:
    """Reduces the clones' gradients over all replicas and updates every copy.

    The gradients of a replica's clones are summed, as without all-reduce, and averaged
    over the replicas.  Sparse gradients stay sparse: the rows of all clones are gathered.

    Args:
      config: the deployment.
      copies: the variables of each clone.
      clone_gradients: for each clone `(gradient, variable)` pairs of its own copies, in
        the same order; see `exchange_gradients` for their shapes.
      optimizer: a `tf.compat.v1.train.Optimizer`.
      total_loss: that of this replica, a scalar.
      clip_norm: largest joint L2 norm of the averaged gradients.
      guard: what guards an update by its gradients; the first clone's `adjusts` what it asks.
      collectives: those of the step so far, after which these come.
      part_updates: with `global_parts`, the update ops of all parts.

    Raises:
      ValueError: if there is no gradient, or the optimizer's variables differ by clone; as
        `mean_updates`.
    """
    collectives = collectives or collectives_of(config, "step")
    summed, loss = _exchanged(config, collectives, clone_gradients, total_loss)
    if clip_norm is not None:
        summed = _clip(collectives, summed, clip_norm)
    applied: list[Any] = []
    guards: list[AlwaysOpen] = []
    made: list[Any] = []
    # The loss comes first: its forward pass must not read variables half updated.
    first, gate = total_loss, None
    means: list[StateUpdate] = []
    if config.global_parts is not None:
        computed = [total_loss, *(g for of_clone in clone_gradients for g, _ in of_clone)]
        means = mean_updates(copies, collectives, part_updates, computed)
        first = gate = gate_op(config, [total_loss, loss, collectives.done()])
    with tf.control_dependencies([first]):
        for i, gradients in enumerate(summed):
            step = tf.train.get_global_step() if i == 0 else None
            with tf.device(gpus.placing(config.clone_device(i))):
                guards.append(guard(gradients, adjusts=i == 0))
            with copies.optimizer_variables(i, made), guards[i].passed():
                optimizer_of_clone = copies.optimizer_of_clone(optimizer, i)
                applied.append(optimizer_of_clone.apply_gradients(gradients, global_step=step))
        by_clone = apply_updates(config, copies, means)
    made_by_parts = [list(guard.held(ops)) for guard, ops in zip(guards, by_clone, strict=True)]
    return Step(applied, loss, collectives, guards, made_by_parts, gate)


def _exchanged(
    config: DeploymentConfig,
    collectives: Collectives,
    clone_gradients: Sequence[Sequence[GradientAndVariable]],
    total_loss: Any,
) -> tuple[list[list[GradientAndVariable]], Any]:
    """The mean of the replicas' gradients and losses; each counts by its share of the batch."""
    if config.global_parts is None:
        scale = 1 / config.num_replicas
    else:
        scale, share = 1.0, config.share
        total_loss = total_loss * share
        clone_gradients = collectives.on_devices(
            lambda i: [
                (None if g is None else gradients_lib.scale_gradient(g, share), v)
                for g, v in clone_gradients[i]
            ]
        )
    return exchange_gradients(collectives, clone_gradients, total_loss, scale, config.wire_dtype)


def average_state(step: Step, copies: VariableCopies, done: Sequence[Sequence[Any]]) -> Any:
    """Makes variables that are not trained, such as batch-norm statistics, equal again.

    Floats become the mean over all clones of all replicas, integers the largest value.

    Args:
      step: what this comes after.
      copies: the variables of each clone.
      done: for each clone ops that this comes after.

    Returns:
      An op.
    """
    state = [
        (original, *others)
        for original, others in copies.variables()
        if not original.trainable and original.dtype.base_dtype in DTYPES
    ]
    floats = [column for column in state if column[0].dtype.base_dtype.is_floating]
    integers = [column for column in state if not column[0].dtype.base_dtype.is_floating]
    size = step.collectives.size
    assigned = [
        *_make_equal(step, floats, done, lambda v, name: step.collectives.sum(v, name, 1 / size)),
        *_make_equal(step, integers, done, step.collectives.max),
    ]
    return tf.group(*assigned, *(op for ops in done for op in ops))


def copies_difference(config: DeploymentConfig, copies: VariableCopies) -> Any:
    """The largest difference between any two copies of any variable: 0 if all is well.

    All replicas must run it after the same step, and get the same answer.  Reads the
    collection `GLOBAL_VARIABLES`.

    Returns:
      A float64 scalar.
    """
    collectives = collectives_of(config, "difference")
    variables = numeric_variables()

    def copy_of(variable: Any, i: int) -> Any:
        other = copies.of_clone(variable, i)
        return (variable if other is None else other).read_value()

    def spread(values: list[Any], label: str) -> list[Any]:
        most = collectives.max(values, label)
        least = collectives.max(collectives.on_devices(lambda i: -values[i]), f"-{label}")
        return collectives.on_devices(lambda i: most[i] + least[i])

    values = collectives.on_devices(lambda i: [copy_of(v, i) for v in variables])
    spreads, *_ = collectives.in_packs(values, variables, spread)
    with tf.control_dependencies([collectives.done()]):
        largest = [tf.cast(tf.reduce_max(value), tf.float64) for value in spreads]
        return tf.reduce_max(tf.stack(largest), name="copies_difference")


def _make_equal(
    step: Step,
    columns: Sequence[Sequence[Any]],
    done: Sequence[Sequence[Any]],
    collective: Callable[[list[Any], str], list[Any]],
) -> list[Any]:
    """Assigns what `collective` makes of the copies' values to each copy; returns the ops."""

    def read(i: int) -> list[Any]:
        with tf.control_dependencies(done[i]):
            return [column[i].read_value() for column in columns]

    values = step.collectives.in_packs(
        step.collectives.on_devices(read), [column[0] for column in columns], collective
    )
    return [
        assign(column[i], value)
        for i, of_clone in enumerate(values)
        for column, value in zip(columns, of_clone, strict=True)
    ]


def _clip(
    collectives: Collectives, clone_gradients: Sequence[list[GradientAndVariable]], norm: float
) -> list[list[GradientAndVariable]]:
    return collectives.on_devices(
        lambda i: gradients_lib.clip_by_global_norm(clone_gradients[i], norm)
    )
