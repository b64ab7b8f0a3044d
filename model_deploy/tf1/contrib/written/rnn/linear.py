"""A linear layer over tensors side by side, by the names of variables of TensorFlow 1."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def linear(args: Sequence[Any], output_size: int, bias: bool = True) -> Any:
    """Tensors [batch, ...] side by side, times the variable `kernel`, plus `bias`.

    Args:
      args: float [batch, depth] each.
      output_size: the size of the result.
      bias: whether there is one, of zeros at the start.

    Returns:
      Float [batch, output_size].
    """
    together = tf.concat(list(args), 1) if len(args) > 1 else args[0]
    shape = [together.shape.as_list()[1], output_size]
    result = tf.matmul(together, tf.get_variable("kernel", shape, together.dtype))
    if not bias:
        return result
    start = tf.zeros_initializer()
    return result + tf.get_variable("bias", [output_size], together.dtype, start)
