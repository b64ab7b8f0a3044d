"""The update of a step: gradients by the optimizer, changes, update ops, and what comes after."""

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
    """Makes all changes of one step to one set of variables, on one condition.

    Args:
      optimizer: a `tf.compat.v1.train.Optimizer`.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, or is an
        `IndexedSlices` over its rows.
      condition: lets the changes be made, or not.
      global_step: an integer scalar variable that the optimizer counts up; None if it is not to.
      changes: changes of other variables.
      update_ops: ops, or tensors of any shapes, that were made before.  One that assigns to a
        variable with a gradient comes before the optimizer's change.

    Returns:
      Ops.
    """
    update_ops = condition.hold_back(update_ops)
    first = _assignments_to([variable for _, variable in gradients], update_ops)
    with condition.passed(), tf.control_dependencies(first):
        applied = [optimizer.apply_gradients(gradients, global_step=global_step)]
        applied += [change.make() for change in changes]
    return [*applied, *update_ops]


def with_functions(updates: Sequence[Any], functions: Iterable[Callable[[], Any]]) -> list[Any]:
    """The updates of a step, and the ops that functions make of the variables after them."""
    return [*updates, *ops_after(updates, functions)]


def split_functions(
    update_ops: Iterable[Any],
) -> tuple[list[Any], list[Callable[[], Any]]]:
    """The ops among update ops, and the functions, which make ops that come after the update."""
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
