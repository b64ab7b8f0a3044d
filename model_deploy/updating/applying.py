"""The update of a step: gradients by the optimizer, other changes, update ops, later ops."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.gradients import GradientAndVariable
from model_deploy.op_types import is_assignment
from model_deploy.updating.after_update import ops_after
from model_deploy.updating.changes import Change
from model_deploy.updating.conditions import Condition


def apply_changes(
    optimizer: Any,
    gradients: Sequence[GradientAndVariable],
    condition: Condition,
    *,
    global_step: Any = None,
    changes: Iterable[Change] = (),
    update_ops: Sequence[Any] = (),
) -> list[Any]:
    """Makes all changes that one step makes to one set of variables, on one condition.

    Args:
      optimizer: a `tf.compat.v1.train.Optimizer`.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, or is an
        `IndexedSlices` over its rows.
      condition: the condition on which they are made.
      global_step: an integer scalar variable that the optimizer increments; or None.
      changes: changes of other variables.
      update_ops: existing ops, or tensors of any shapes.  Ops that assign to a variable with a
        gradient run before the optimizer's change.

    Returns:
      The ops that make the changes.
    """
    update_ops = condition.hold_back(update_ops)
    first = _assignments_to([variable for _, variable in gradients], update_ops)
    with condition.passed(), tf.control_dependencies(first):
        applied = [optimizer.apply_gradients(gradients, global_step=global_step)]
        applied += [change.make() for change in changes]
    return [*applied, *update_ops]


def with_functions(updates: Sequence[Any], functions: Iterable[Callable[[], Any]]) -> list[Any]:
    """Returns the updates, followed by the ops that `functions` make after them."""
    return [*updates, *ops_after(updates, functions)]


def split_functions(
    update_ops: Iterable[Any],
) -> tuple[list[Any], list[Callable[[], Any]]]:
    """Splits update ops into ops and functions; functions make ops that run after the update."""
    update_ops = list(update_ops)
    ops = [op for op in update_ops if not callable(op)]
    return ops, [op for op in update_ops if callable(op)]


def _assignments_to(variables: Iterable[Any], ops: Iterable[Any]) -> list[Any]:
    """The ops, of some ops and tensors, that assign to one of the resource variables."""
    handles = {id(variable.handle) for variable in variables if hasattr(variable, "handle")}
    return [
        op
        for op in ops
        if isinstance(op, tf.Operation) and is_assignment(op.type) and id(op.inputs[0]) in handles
    ]
