"""`variables_to_save`: what a checkpoint has of the variables of a graph."""

import functools
from collections.abc import Collection, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.all_reduce import rows_of_replicas
from model_deploy.optimization import current_value
from model_deploy.updating import replica_counts, shared_out


def variables_to_save(
    missing: Collection[str] = (),
    moved: Mapping[str, Any] | None = None,
    *,
    rows: bool = True,
) -> list[Any]:
    """Returns what `tf.train.Saver` should save: all variables, as a checkpoint should have them.

    Tables that are trained by rows, and their slots, are saved as the dense optimizer has them,
    with what their rows have missed.  Counts of replicas are restored for other numbers of
    replicas, too.

    Reads the collections `GLOBAL_VARIABLES` and `SAVEABLE_OBJECTS`, and that of tables.

    Args:
      missing: names of counts to restore from the global step.
      moved: by name of a variable what restores it from another layout, see `moved_variables`.
      rows: whether to save values that replicas have of their own, which the chief has got.

    Returns:
      Variables of any shapes, and objects that stand for some of them.
    """
    counts, moved = replica_counts(), moved or {}

    def to_save(variable: Any) -> Any:
        name = variable.op.name
        if name in moved:
            return moved[name]
        if name not in counts:
            value = current_value(variable)
            return variable if value is None else internals.saved_as(variable, value)
        convert = functools.partial(shared_out, num_replicas=variable.shape[0])
        saved_as = tf.GraphKeys.GLOBAL_STEP if name in missing else name
        return internals.restored_by(variable, convert, {saved_as: variable.dtype.base_dtype})

    others = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
    return [*map(to_save, tf.global_variables()), *others, *(rows_of_replicas() if rows else ())]
