"""Counts of what each replica has done, which a checkpoint of other replicas can set, too."""

from typing import Any

import tensorflow.compat.v1 as tf

# Not a string: collections with other names do not go into checkpoints.
_COUNTS = ("model_deploy", "replica_counts")


def note_replica_counts(variable: Any) -> None:
    """Notes in the default graph that an int64 variable [num_replicas] counts for each replica."""
    tf.add_to_collection(_COUNTS, variable)


def replica_counts() -> dict[str, Any]:
    """The variables of the default graph that count for each replica, by name."""
    return {variable.op.name: variable for variable in tf.get_collection(_COUNTS)}


def shared_out(counts: Any, num_replicas: int) -> Any:
    """Counts with the same sum for another number of replicas, the first of which have one more.

    Args:
      counts: int64 [n], for any n; or a scalar, that of one.
      num_replicas: how many there are now.

    Returns:
      int64 [num_replicas] of the same sum; the counts themselves if there were as many replicas.
    """

    def others() -> Any:
        total = tf.reduce_sum(counts)
        first = tf.range(num_replicas, dtype=tf.int64) < total % num_replicas
        return total // num_replicas + tf.cast(first, tf.int64)

    counts = tf.reshape(counts, [-1])
    as_many = tf.equal(tf.size(counts), num_replicas)
    return tf.ensure_shape(tf.cond(as_many, lambda: counts, others), [num_replicas])
