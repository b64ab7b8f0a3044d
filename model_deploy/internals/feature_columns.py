"""Feature columns that look rows up by a given function; seen in TensorFlow 2.16 to 2.21."""

from collections.abc import Callable
from typing import Any

from tensorflow.python.feature_column import feature_column_v2


def embedding_column_by(
    categorical_column: Any, width: int, combiner: str, look_up: Callable[[Any, Any], Any]
) -> Any:
    """Returns a column like `tf.feature_column.embedding_column` whose rows a function looks up.

    Wraps `feature_column_v2.EmbeddingColumn`, `EmbeddingColumn._get_dense_tensor_internal` and
    `EmbeddingColumn._old_get_dense_tensor_internal`.

    Args:
      categorical_column: a column of `tf.feature_column`.
      width: values of a row.
      combiner: as of `tf.feature_column.embedding_column`.
      look_up: returns rows, [examples, width], for the ids, a `SparseTensor`, and the weights, of
        the same structure or None.
    """

    class Column(feature_column_v2.EmbeddingColumn):
        """A column whose variables `look_up` makes."""

        def create_state(self, state_manager: Any) -> None:
            """Makes no variables."""

        def _get_dense_tensor_internal(self, sparse_tensors: Any, state_manager: Any) -> Any:
            del state_manager
            return look_up(sparse_tensors.id_tensor, sparse_tensors.weight_tensor)

        def _old_get_dense_tensor_internal(
            self, sparse_tensors: Any, weight_collections: Any, trainable: Any
        ) -> Any:
            del weight_collections, trainable
            return look_up(sparse_tensors.id_tensor, sparse_tensors.weight_tensor)

    return Column(
        categorical_column,
        dimension=width,
        combiner=combiner,
        initializer=None,
        ckpt_to_load_from=None,
        tensor_name_in_ckpt=None,
        max_norm=None,
        trainable=True,
    )
