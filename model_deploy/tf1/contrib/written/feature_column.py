"""`tf.contrib.feature_column`: what TensorFlow has kept in Keras alone."""

from collections.abc import Iterable, Mapping
from typing import Any


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Iterable[Any],
    weight_collections: Any = None,
    trainable: bool = True,
) -> tuple[Any, Any]:
    """What sequence columns make of sequences, in the order of the columns' names.

    The layer is `SequenceFeatures` of tf-keras.

    Args:
      features: for each column a `SparseTensor` [batch, length].
      feature_columns: embeddings or indicators of `tf.feature_column.sequence_...` columns, and
        `sequence_numeric_column`.
      weight_collections: None; variables are in the usual collections.
      trainable: whether weights of embeddings are trained.

    Returns:
      Float32 [batch, length, sum of the columns' numbers], and int64 [batch], each its length.

    Raises:
      ValueError: if `weight_collections` is given, or a column is not one of sequences.
    """
    if weight_collections is not None:
        raise ValueError(f"weight_collections must be None, got {weight_collections!r}")
    import tf_keras  # noqa: PLC0415 - seconds, for a function that few programs call

    layer = tf_keras.experimental.SequenceFeatures(
        list(feature_columns), trainable=trainable, name="sequence_input_layer"
    )
    values, lengths = layer(dict(features))
    return values, lengths
