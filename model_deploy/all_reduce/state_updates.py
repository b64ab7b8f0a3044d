"""Update ops of parts, such as batch-norm statistics have, as one update by their mean.

What each part adds to a variable, or assigns to it, is averaged over all parts, before the first
variable is changed.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import Collectives
from model_deploy.updating import Change, ChangeOfParts, PartUpdates, changes_by_parts


def mean_changes(
    copies: VariableCopies,
    collectives: Collectives,
    parts: Sequence[PartUpdates],
    computed: Sequence[Any],
) -> list[list[Change]]:
    """The means of what update ops do, by collective ops; the ops themselves are not to run.

    Args:
      copies: the variables of each clone.
      collectives: the collective ops of the step, after which the ones made here come.
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; an op that they need is no update.

    Returns:
      For each clone the changes of its own variables: by the mean over all parts of floats, by
      the largest of integers.

    Raises:
      ValueError: as `changes_by_parts`.
    """
    found = changes_by_parts(parts, computed, _originals(copies))
    by_clone: list[list[Change]] = collectives.on_devices(lambda i: [])
    for change, values in zip(found, _exchanged(collectives, found), strict=True):
        for i, value in enumerate(values):
            variable = copies.of_clone(change.variable, i)
            if variable is not None:
                by_clone[i].append(Change(variable, change.method, value))
    return by_clone


def _originals(copies: VariableCopies) -> dict[str, Any]:
    """The first clone's variable by the name of the op of each copy."""
    named = {variable.op.name: variable for variable in tf.global_variables()}
    for original, others in copies.variables():
        named.update({other.op.name: original for other in others})
    return named


def _exchanged(collectives: Collectives, changes: Sequence[ChangeOfParts]) -> list[list[Any]]:
    """For each change the mean of floats over all clones of all replicas, the largest of others,
    for each clone of this process."""
    found: list[list[Any]] = [[] for _ in changes]
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
        for k, place in enumerate(places):
            found[place] = [of_clone[k] for of_clone in columns]
    return found


def _largest(values: Sequence[Any]) -> Any:
    return tf.reduce_max(tf.stack(list(values)), axis=0)
