"""Changes of variables by update ops: the value that each part of a global batch adds or assigns.

With `global_parts` replicas may take different numbers of parts.  For the update to be the same on
any number of replicas, update ops do not run; the mean of their values over all parts is applied.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.config import DeploymentConfig
from model_deploy.op_types import ASSIGNMENTS, is_assignment
from model_deploy.updating.conditions import may_change_state


class PartUpdates(NamedTuple):
    """The update ops of one part of a clone.

    Attributes:
      clone_index: the clone.
      weight: weight of the part in the mean; all weights of all replicas sum to 1.
      ops: ops, or tensors of any shapes.
    """

    clone_index: int
    weight: float
    ops: Sequence[Any]


class Change(NamedTuple):
    """An assignment to a variable in a step, as opposed to an optimizer's update.

    Attributes:
      variable: the variable.
      method: name of the variable's method: `assign`, `assign_add` or `assign_sub`.
      value: argument of the method, a tensor of the variable's shape.
    """

    variable: Any
    method: str
    value: Any

    def make(self) -> Any:
        """Returns the op that makes the change, on the variable's device."""
        with tf.device(self.variable.device):
            change = getattr(self.variable, self.method)
            return change(tf.reshape(self.value, self.variable.shape), read_value=False)


class ChangeOfParts(NamedTuple):
    """A change of one variable by all parts of this process.

    Attributes:
      variable: the variable.
      method: as in `Change`.
      terms: by clone index, one tensor per part, of the variable's shape or as many elements:
        floats times the weight of the part, integers unscaled.
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
    """Returns the update ops of all parts of all clones, and the replica's own, with weights.

    Args:
      config: the deployment, with `global_parts`.
      groups: for each clone the numbers of its parts.
      each: ops, or tensors of any shapes, of each part.
      once: update ops that belong to no part.
    """
    weight = config.share / config.batches_per_step
    parts = [
        PartUpdates(clone, weight, each[k]) for clone, group in enumerate(groups) for k in group
    ]
    return [*parts, PartUpdates(0, config.share, once)]


def changes_by_parts(
    parts: Sequence[PartUpdates], computed: Sequence[Any], originals: Mapping[str, Any]
) -> list[ChangeOfParts]:
    """Finds the assignments that update ops make, by variable and method; the ops need not run.

    Args:
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; ops that they need are no updates.
      originals: by the op name of a variable or a clone's copy of it, the variable.

    Raises:
      ValueError: naming an update op that is no assignment, or one that needs another's result.
    """
    flat = tf.nest.flatten([each for each in computed if each is not None], expand_composites=True)
    known = graph_walk.ancestors((tensor.op for tensor in flat), control_inputs=True)
    found: dict[tuple[str, str], ChangeOfParts] = {}
    for part in parts:
        ends = [getattr(op, "op", op) for op in part.ops]
        needed = graph_walk.ancestors(ends, control_inputs=True, known=known)
        changes = {op for op in needed if may_change_state(op)}
        for op in sorted(changes, key=lambda op: str(op.name)):
            _check(op, changes, known, originals)
            variable = originals[op.inputs[0].op.name]
            new = ChangeOfParts(variable, ASSIGNMENTS[op.type], {})
            change = found.setdefault((variable.op.name, op.type), new)
            value = op.inputs[1]
            term = value * part.weight if value.dtype.is_floating else value
            change.terms.setdefault(part.clone_index, []).append(term)
    return list(found.values())


def _check(op: Any, changes: set[Any], known: set[Any], originals: Mapping[str, Any]) -> None:
    """Checks that an op is an assignment to a known variable, and independent of other changes."""
    if not is_assignment(op.type) or op.inputs[0].op.name not in originals:
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
