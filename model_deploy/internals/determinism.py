"""Whether TensorFlow's ops are deterministic; seen in TensorFlow 2.16 to 2.21."""

from tensorflow.python.framework import config


def ops_are_deterministic() -> bool:
    """Whether the program has called `tf.config.experimental.enable_op_determinism()`.

    Wraps `config.is_op_determinism_enabled`.
    """
    return bool(config.is_op_determinism_enabled())
