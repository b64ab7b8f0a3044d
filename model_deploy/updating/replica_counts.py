"""Counts per replica, such as batches taken, which survive a change of the number of replicas."""

from typing import Any

import tensorflow.compat.v1 as tf

# Not a string: collections with other names do not go into checkpoints.
_COUNTS = ("model_deploy", "replica_counts")


def note_replica_counts(variable: Any) -> None:
    """Notes in the default graph an int64 variable [num_replicas], one count per replica."""
    tf.add_to_collection(_COUNTS, variable)


def replica_counts() -> dict[str, Any]:
    """Returns the variables given to `note_replica_counts`, by name."""
    return {variable.op.name: variable for variable in tf.get_collection(_COUNTS)}


def shared_out(counts: Any, num_replicas: int) -> Any:
    """Redistributes counts over another number of replicas; the first ones get the remainder.

    Args:
      counts: int64 [n], for any n; or a scalar for one replica.
      num_replicas: the new number of replicas.

    Returns:
      int64 [num_replicas] with the same sum; `counts` unchanged if n is `num_replicas`.
    """

    def others() -> Any:
        total = tf.reduce_sum(counts)
        first = tf.range(num_replicas, dtype=tf.int64) < total % num_replicas
        return total // num_replicas + tf.cast(first, tf.int64)

    counts = tf.reshape(counts, [-1])
    as_many = tf.equal(tf.size(counts), num_replicas)
    return tf.ensure_shape(tf.cond(as_many, lambda: counts, others), [num_replicas])
