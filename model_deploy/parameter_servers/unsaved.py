"""Variables that are in no collection: no checkpoint has them, and no initializer of a session."""

from typing import Any

import tensorflow.compat.v1 as tf


def unsaved_variable(device: str, name: str, initial: Any) -> Any:
    """Returns a variable that is in no collection; its value is `value_of` it.

    Args:
      device: device of the variable; on a parameter server it is there before and after this
        process.
      name: name of the variable.
      initial: initial value, of the variable's shape.
    """
    with tf.device(device):
        return tf.Variable(initial, trainable=False, use_resource=True, collections=[], name=name)


def value_of(variable: Any, initial: Any) -> Any:
    """Returns the value of such a variable, of its shape, or `initial` before it has one."""
    return tf.cond(variable.is_initialized(), variable.read_value, lambda: tf.constant(initial))
