"""`carried_as`, `carrier`: the type in which the values of a type are sent and compared."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

# Types that TensorFlow's collective ops have.
CARRIED = (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
# Types that they do not have -> types that hold the same values.
_CARRIERS = {
    **dict.fromkeys((tf.bool, tf.int8, tf.uint8, tf.int16, tf.uint16), tf.int32),
    tf.uint32: tf.int64,
    tf.bfloat16: tf.float32,
}


def carried_as(dtype: tf.DType) -> tf.DType:
    """Returns the type in which values of a type are sent and added up, its own where that is one.

    Args:
      dtype: the type, of a reference too.
    """
    found: tf.DType = _CARRIERS.get(dtype.base_dtype, dtype.base_dtype)
    return found


def can_be_sent(dtype: tf.DType) -> bool:
    """Whether collective ops can send the values of a type, of a reference too."""
    return carried_as(dtype) in CARRIED


def carrier(dtype: tf.DType, name: str) -> tf.DType:
    """Returns the type in which values of a type are sent, if there is one.

    Args:
      dtype: the type, of a reference too.
      name: of what is sent, for the error.

    Raises:
      ValueError: for one that cannot be sent.
    """
    if not can_be_sent(dtype):
        raise ValueError(f"{name} must be of numbers to be sent, got {dtype.base_dtype.name}")
    return carried_as(dtype)


def largest(tensors: Sequence[Any]) -> Any:
    """Returns each element's maximum, of flags whether any is set.

    Args:
      tensors: tensors of one shape and dtype.
    """
    dtype = tensors[0].dtype.base_dtype
    compared = tf.cast(tf.stack(list(tensors)), carried_as(dtype))
    return tf.cast(tf.reduce_max(compared, axis=0), dtype)
