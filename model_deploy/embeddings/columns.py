"""Feature columns whose rows are those of a table."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.embeddings.lookup import look_up
from model_deploy.embeddings.table import FixedTable, GrowingTable


def embedding_column(
    categorical_column: Any,
    table: FixedTable | GrowingTable,
    *,
    combiner: str = "mean",
    is_training: bool = True,
) -> Any:
    """Returns a dense feature column, as `tf.feature_column.embedding_column`, of a table's rows.

    Columns with the same table share its rows.  A table that grows needs no rows for buckets that
    no example falls into: `crossed_column` and `categorical_column_with_hash_bucket` may have 2^60
    buckets, of which no two ids share one.

    Args:
      categorical_column: a column of `tf.feature_column`: identity, vocabulary, hash bucket,
        crossed, weighted, or a sequence of one of these.
      table: the table.
      combiner: see `look_up`.
      is_training: see `look_up`.
    """

    def rows(ids: Any, weights: Any) -> Any:
        found = _matrix(ids)
        weights = None if weights is None else _matrix(weights)
        combined = look_up(table, found, weights, combiner=combiner, is_training=is_training)
        shape = tf.concat([ids.dense_shape[:-1], [table.width]], 0)
        combined = tf.reshape(combined, shape)
        combined.set_shape([*ids.shape[:-1], table.width])
        return combined

    return internals.embedding_column_by(categorical_column, table.width, combiner, rows)


def _matrix(sparse: Any) -> Any:
    """Returns a `SparseTensor` of rank 2, whose rows are what the last dimension combines."""
    shape = [tf.reduce_prod(sparse.dense_shape[:-1]), sparse.dense_shape[-1]]
    matrix = tf.sparse.reshape(sparse, tf.stack(shape))
    return tf.SparseTensor(matrix.indices, matrix.values, tf.stack(shape))
