"""How weights start."""

from typing import Any

import tensorflow.compat.v1 as tf


def trunc_normal(stddev: float) -> Any:
    """Returns an initializer: normal around 0, drawn again where beyond twice the `stddev`."""
    return tf.truncated_normal_initializer(0.0, stddev)
