"""Examples run in the process of the tests: what they set for the process is set back."""

import pytest
import tensorflow.compat.v1 as tf


@pytest.fixture(autouse=True)
def log_level():
    """The level of TensorFlow's logger is that of before."""
    level = tf.get_logger().level
    yield
    tf.get_logger().setLevel(level)
