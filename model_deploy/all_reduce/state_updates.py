"""The mean over all parts of their update ops, such as updates of batch-norm statistics.

The values that parts add or assign to a variable are averaged over all parts before any variable
changes.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.all_reduce.variable_copies import VariableCopies
from model_deploy.collectives import Collectives, largest
from model_deploy.updating import Change, ChangeOfParts, PartUpdates, changes_by_parts


def mean_changes(
    copies: VariableCopies,
    collectives: Collectives,
    parts: Sequence[PartUpdates],
    computed: Sequence[Any],
) -> list[list[Change]]:
    """Averages the changes by update ops with collective ops; the update ops themselves do not run.

    Args:
      copies: the variables of each clone.
      collectives: the collective ops of the step; the new ops run after them.
      parts: the update ops.
      computed: losses and gradients, tensors of any shapes; ops that they need are no updates.

    Returns:
      For each clone the changes of its copies: by the mean over all parts for floats, by the
      maximum for integers.

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
    """Maps the op name of each variable and copy to the first clone's variable."""
    named = {variable.op.name: variable for variable in tf.global_variables()}
    for original, others in copies.variables():
        named.update({other.op.name: original for other in others})
    return named


def _exchanged(collectives: Collectives, changes: Sequence[ChangeOfParts]) -> list[list[Any]]:
    """Returns for each change one value per clone: the mean of floats, the maximum of integers."""
    found: list[list[Any]] = [[] for _ in changes]
    for is_floating in (True, False):
        places = [
            place
            for place, change in enumerate(changes)
            if change.variable.dtype.base_dtype.is_floating == is_floating
        ]
        chosen = [changes[place] for place in places]
        combine = tf.add_n if is_floating else largest

        def values(i: int, chosen: Any = chosen, by: Any = combine) -> Any:
            return [
                by([tf.reshape(term, change.variable.shape) for term in change.terms[i]])
                if i in change.terms
                else _nothing(change.variable)
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


def _nothing(variable: Any) -> Any:
    """What changes neither a sum of floats, nor a maximum of integers or flags."""
    dtype = variable.dtype.base_dtype
    nothing = tf.constant(dtype.min, dtype) if dtype.is_integer else tf.zeros([], dtype)
    return tf.fill(variable.shape, nothing)
