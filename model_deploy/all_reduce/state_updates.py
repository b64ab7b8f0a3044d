"""Update ops of parts, such as those of batch-norm statistics, as one update of their mean.

Replicas of which some take more parts than others make the update that the same parts would make
on any number of replicas: what each part adds to a variable, or assigns to it, is averaged over
all parts, before the first variable is changed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, guards
from model_deploy.all_reduce.collectives import Collectives
from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.config import DeploymentConfig

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


class StateUpdate(NamedTuple):
    """What all clones do with one variable.

    Attributes:
      variable: that of the first clone.
      method: name of the variable's method.
      operands: for each clone a tensor of the variable's shape: the mean over all parts of
        floats, the largest of integers.
    """

    variable: Any
    method: str
    operands: list[Any]


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


def mean_updates(
    config: DeploymentConfig,
    copies: VariableCopies,
    collectives: Collectives,
    parts: Sequence[PartUpdates],
    computed: Sequence[Any],
) -> list[StateUpdate]:
    """The means of what update ops do, by collective ops; the ops themselves are not to run.

    Args:
      config: the deployment.
      copies: the variables of each clone.
      collectives: those of the step, after which these come.
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; what they need is no update.

    Raises:
      ValueError: naming an update op of another kind, or one that needs another one's result.
    """
    flat = tf.nest.flatten([each for each in computed if each is not None], expand_composites=True)
    known = graph_walk.ancestors((tensor.op for tensor in flat), control_inputs=True)
    originals = _originals(config, copies)
    found: dict[tuple[str, str], dict[int, list[Any]]] = {}
    for part in parts:
        ends = [getattr(op, "op", op) for op in part.ops]
        needed = graph_walk.ancestors(ends, control_inputs=True, known=known)
        changes = {op for op in needed if guards.changes_a_variable(op)}
        for op in sorted(changes, key=lambda op: str(op.name)):
            _check(op, changes, known, originals)
            name = originals[op.inputs[0].op.name].op.name
            terms = found.setdefault((name, op.type), {}).setdefault(part.clone_index, [])
            value = op.inputs[1]
            terms.append(value * part.weight if value.dtype.is_floating else value)
    return _exchanged(config, collectives, found, originals)


def apply_updates(
    config: DeploymentConfig, copies: VariableCopies, updates: Sequence[StateUpdate]
) -> list[list[Any]]:
    """For each clone the ops that make the updates of its copies."""
    made: list[list[Any]] = [[] for _ in range(config.num_clones)]
    for update in updates:
        for i, operand in enumerate(update.operands):
            variable = copies.of_clone(update.variable, i)
            if variable is None:
                continue
            with tf.device(variable.device):
                change = getattr(variable, update.method)
                made[i].append(change(tf.reshape(operand, variable.shape), read_value=False))
    return made


def _originals(config: DeploymentConfig, copies: VariableCopies) -> dict[str, Any]:
    """The first clone's variable by the name of the op of each copy."""
    named = {variable.op.name: variable for variable in tf.global_variables()}
    for original, others in copies.variables():
        named.update({other.op.name: original for other in others})
    return named


def _check(op: Any, changes: set[Any], known: set[Any], originals: dict[str, Any]) -> None:
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


def _exchanged(
    config: DeploymentConfig,
    collectives: Collectives,
    found: dict[tuple[str, str], dict[int, list[Any]]],
    originals: dict[str, Any],
) -> list[StateUpdate]:
    by_name = {variable.op.name: variable for variable in originals.values()}
    updates: list[StateUpdate | None] = [None] * len(found)
    for is_floating in (True, False):
        keys = [key for key in found if by_name[key[0]].dtype.base_dtype.is_floating == is_floating]
        variables = [by_name[name] for name, _ in keys]
        combine = tf.add_n if is_floating else _largest

        def values(i: int, keys: Any = keys, variables: Any = variables, by: Any = combine) -> Any:
            return [
                by([tf.reshape(term, v.shape) for term in found[key][i]])
                if i in found[key]
                else tf.zeros(v.shape, v.dtype.base_dtype)
                for key, v in zip(keys, variables, strict=True)
            ]

        if not keys:
            continue
        columns = collectives.in_packs(
            collectives.on_devices(values),
            variables,
            collectives.sum if is_floating else collectives.max,
        )
        for k, (key, variable) in enumerate(zip(keys, variables, strict=True)):
            operands = [of_clone[k] for of_clone in columns]
            place = list(found).index(key)
            updates[place] = StateUpdate(variable, _METHODS[key[1]], operands)
    return [update for update in updates if update is not None]


def _largest(values: Sequence[Any]) -> Any:
    return tf.reduce_max(tf.stack(list(values)), axis=0)
