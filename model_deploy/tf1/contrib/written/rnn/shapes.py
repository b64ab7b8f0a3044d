"""What cells ask of the shapes of their inputs."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def transpose_batch_time(x: Any) -> Any:
    """A tensor [a, b, ...] as [b, a, ...]."""
    x = tf.convert_to_tensor(x)
    return tf.transpose(x, [1, 0, *range(2, x.shape.ndims)])


def best_effort_input_batch_size(flat_input: Sequence[Any]) -> Any:
    """The batch size of tensors [steps, batch, ...]: an integer where one of them knows it."""
    for each in flat_input:
        known = each.shape.as_list()[1] if each.shape.ndims and each.shape.ndims > 1 else None
        if known is not None:
            return known
    return tf.shape(flat_input[0])[1]
