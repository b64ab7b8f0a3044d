"""Update ops of the parts of a global batch: what each adds to a variable, or assigns to it.

Replicas of which some take more parts than others make the update that the same parts would make
on any number of replicas: the mean over all parts, in place of the ops, which do not run.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.config import DeploymentConfig
from model_deploy.updating import guards

# Type of op -> the method of a variable that does the same.
_METHODS = {
    "AssignVariableOp": "assign",
    "AssignAddVariableOp": "assign_add",
    "AssignSubVariableOp": "assign_sub",
    "Assign": "assign",
    "AssignAdd": "assign_add",
    "AssignSub": "assign_sub",
}


class PartUpdates(NamedTuple):
    """The update ops of one part of a clone.

    Attributes:
      clone_index: the clone.
      weight: how much they count, of 1 over all parts of all replicas.
      ops: ops, or tensors of any shapes.
    """

    clone_index: int
    weight: float
    ops: Sequence[Any]


class Change(NamedTuple):
    """What the parts of this process do with one variable.

    Attributes:
      variable: the variable.
      method: name of the variable's method.
      terms: for each clone tensors of as many elements as the variable has: floats times the
        weight of their part, integers as they are.
    """

    variable: Any
    method: str
    terms: dict[int, list[Any]]


def part_updates(
    config: DeploymentConfig,
    groups: Sequence[Sequence[int]],
    each: Sequence[Sequence[Any]],
    once: Sequence[Any],
) -> list[PartUpdates]:
    """The update ops of all parts of all clones, and of what each replica does once.

    Args:
      config: the deployment, with `global_parts`.
      groups: for each clone the numbers of its parts.
      each: ops, or tensors of any shapes, of each part.
      once: those that belong to no part.
    """
    weight = config.share / config.batches_per_step
    parts = [
        PartUpdates(clone, weight, each[k]) for clone, group in enumerate(groups) for k in group
    ]
    return [*parts, PartUpdates(0, config.share, once)]


def changes_by_parts(
    parts: Sequence[PartUpdates], computed: Sequence[Any], originals: Mapping[str, Any]
) -> list[Change]:
    """What update ops do, for each variable and method; the ops themselves are not to run.

    Args:
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; what they need is no update.
      originals: the variable that counts by the name of the op of each one that is changed.

    Raises:
      ValueError: naming an update op of another kind, or one that needs another one's result.
    """
    flat = tf.nest.flatten([each for each in computed if each is not None], expand_composites=True)
    known = graph_walk.ancestors((tensor.op for tensor in flat), control_inputs=True)
    found: dict[tuple[str, str], Change] = {}
    for part in parts:
        ends = [getattr(op, "op", op) for op in part.ops]
        needed = graph_walk.ancestors(ends, control_inputs=True, known=known)
        changes = {op for op in needed if guards.changes_a_variable(op)}
        for op in sorted(changes, key=lambda op: str(op.name)):
            _check(op, changes, known, originals)
            variable = originals[op.inputs[0].op.name]
            new = Change(variable, _METHODS[op.type], {})
            change = found.setdefault((variable.op.name, op.type), new)
            value = op.inputs[1]
            term = value * part.weight if value.dtype.is_floating else value
            change.terms.setdefault(part.clone_index, []).append(term)
    return list(found.values())


def _check(op: Any, changes: set[Any], known: set[Any], originals: Mapping[str, Any]) -> None:
    if op.type not in _METHODS or op.inputs[0].op.name not in originals:
        raise ValueError(
            "with global_parts an update op must add to a global variable, or assign to it, what "
            f"can be averaged over parts, got {op.name} of type {op.type}; give ops that need "
            "no average as a function"
        )
    before = graph_walk.ancestors([op.inputs[1].op], control_inputs=True, known=known)
    if others := before & changes:
        [first, *_] = sorted(other.name for other in others)
        raise ValueError(
            "with global_parts an update op must not need what another one has changed, got "
            f"{op.name} after {first}"
        )
