"""Update ops of parts, such as those of batch-norm statistics, as one update of their mean.

What each part adds to a variable, or assigns to it, is averaged over all parts, before the first
variable is changed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import Collectives
from model_deploy.config import DeploymentConfig
from model_deploy.updating import Change, PartUpdates, changes_by_parts


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


def mean_updates(
    copies: VariableCopies,
    collectives: Collectives,
    parts: Sequence[PartUpdates],
    computed: Sequence[Any],
) -> list[StateUpdate]:
    """The means of what update ops do, by collective ops; the ops themselves are not to run.

    Args:
      copies: the variables of each clone.
      collectives: those of the step, after which these come.
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; what they need is no update.

    Raises:
      ValueError: as `changes_by_parts`.
    """
    return _exchanged(collectives, changes_by_parts(parts, computed, _originals(copies)))


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


def _originals(copies: VariableCopies) -> dict[str, Any]:
    """The first clone's variable by the name of the op of each copy."""
    named = {variable.op.name: variable for variable in tf.global_variables()}
    for original, others in copies.variables():
        named.update({other.op.name: original for other in others})
    return named


def _exchanged(collectives: Collectives, changes: Sequence[Change]) -> list[StateUpdate]:
    """The mean of the changes of floats over all clones of all replicas, the largest of others."""
    updates: list[StateUpdate | None] = [None] * len(changes)
    for is_floating in (True, False):
        places = [
            place
            for place, change in enumerate(changes)
            if change.variable.dtype.base_dtype.is_floating == is_floating
        ]
        chosen = [changes[place] for place in places]
        combine = tf.add_n if is_floating else _largest

        def values(i: int, chosen: Any = chosen, by: Any = combine) -> Any:
            return [
                by([tf.reshape(term, change.variable.shape) for term in change.terms[i]])
                if i in change.terms
                else tf.zeros(change.variable.shape, change.variable.dtype.base_dtype)
                for change in chosen
            ]

        if not chosen:
            continue
        columns = collectives.in_packs(
            collectives.on_devices(values),
            [change.variable for change in chosen],
            collectives.sum if is_floating else collectives.max,
        )
        for k, (place, change) in enumerate(zip(places, chosen, strict=True)):
            operands = [of_clone[k] for of_clone in columns]
            updates[place] = StateUpdate(change.variable, change.method, operands)
    return [update for update in updates if update is not None]


def _largest(values: Sequence[Any]) -> Any:
    return tf.reduce_max(tf.stack(list(values)), axis=0)
