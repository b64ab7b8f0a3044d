"""`carried_as`, `carrier`: the type in which the values of a type are sent."""

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


def carrier(dtype: tf.DType, name: str) -> tf.DType:
    """Returns the type in which values of a type are sent, if there is one.

    Args:
      dtype: the type, of a reference too.
      name: of what is sent, for the error.

    Raises:
      ValueError: for one that cannot be sent.
    """
    found = carried_as(dtype)
    if found not in CARRIED:
        raise ValueError(f"{name} must be of numbers to be sent, got {dtype.base_dtype.name}")
    return found
