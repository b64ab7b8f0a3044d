"""`tf.contrib.lookup`: the tables of `tf.lookup`, by contrib's names and arguments."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals

_ops = internals.lookup_module()


def index_table_from_tensor(
    mapping: Any = None, num_oov_buckets: int = 0, default_value: int = -1, **kwargs: Any
) -> Any:
    """A table from values to their places.

    Args:
      mapping: the values, [n].
      num_oov_buckets: how many places from n on other values get, by their hashes.
      default_value: of other values where there are no such places.
      **kwargs: `hasher_spec`, `dtype` and `name`; `vocabulary_list` is `mapping` by another name.

    Returns:
      A table; `tf.tables_initializer` fills it.

    Raises:
      ValueError: without values.
    """
    mapping = kwargs.pop("vocabulary_list", mapping)
    return _ops.index_table_from_tensor(mapping, num_oov_buckets, default_value, **kwargs)


def index_to_string_table_from_tensor(
    mapping: Any = None, default_value: str = "UNK", name: str | None = None, **kwargs: Any
) -> Any:
    """A table from places to texts.

    Args:
      mapping: the texts, [n].
      default_value: of other places.
      name: of the ops.
      **kwargs: `vocabulary_list` is `mapping` by another name.

    Returns:
      A table; `tf.tables_initializer` fills it.

    Raises:
      ValueError: without texts.
    """
    mapping = kwargs.pop("vocabulary_list", mapping)
    return _ops.index_to_string_table_from_tensor(mapping, default_value, name, **kwargs)


def string_to_index_table_from_file(vocabulary_file: str, **kwargs: Any) -> Any:
    """`index_table_from_file`, as it was called first."""
    return _ops.index_table_from_file(vocabulary_file, **kwargs)


def string_to_index_table_from_tensor(mapping: Any, **kwargs: Any) -> Any:
    """`index_table_from_tensor`, as it was called first."""
    return index_table_from_tensor(mapping, **kwargs)


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """The places of texts.

    Args:
      tensor: texts, of any shape.
      mapping: the texts that have a place, [n].
      default_value: of others.
      name: of the ops.

    Returns:
      int64, of the shape of the tensor.
    """
    table = index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tf.convert_to_tensor(tensor))


def index_to_string(
    tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The texts at places.

    Args:
      tensor: int64, of any shape.
      mapping: the texts, [n].
      default_value: of other places.
      name: of the ops.

    Returns:
      Texts, of the shape of the tensor.
    """
    table = index_to_string_table_from_tensor(mapping, default_value, name)
    return table.lookup(tf.convert_to_tensor(tensor))


class MutableDenseHashTable(tf.lookup.experimental.DenseHashTable):
    """A table that changes, with room for keys side by side: two keys are never used.

    Args:
      key_dtype: of the keys.
      value_dtype: of the values.
      default_value: of other keys.
      empty_key: a key that is never used.
      initial_num_buckets: the room at the start.
      shared_name: of the table, for several sessions; it is its name here.
      name: of the ops.
      checkpoint: whether savers save it.
      deleted_key: another key that is never used; the greatest or, for texts, an odd one by
        default.
    """

    def __init__(  # noqa: PLR0917 - the order of arguments is contrib's
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        deleted_key: Any = None,
    ) -> None:
        if deleted_key is None:
            key_dtype = tf.as_dtype(key_dtype)
            other = b"\xff\xfe deleted" if key_dtype == tf.string else key_dtype.max
            shape = tf.convert_to_tensor(empty_key, key_dtype).shape
            deleted_key = tf.fill(shape, tf.constant(other, key_dtype))
        super().__init__(
            key_dtype,
            value_dtype,
            default_value,
            empty_key,
            deleted_key,
            initial_num_buckets,
            shared_name or name,
            checkpoint,
        )
