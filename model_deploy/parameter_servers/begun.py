"""`Begun`: whether a session with synchronous steps was lost on the parameter servers."""

from collections.abc import Iterable

import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers.unsaved import unsaved_variable, value_of


class Begun:
    """A mark on each parameter server, of which one that is started again knows nothing.

    Args:
      devices: devices on the parameter servers.

    Attributes:
      before: whether any server has its mark, a bool scalar.
      set_marks: an op for the start of a chief's session.
      remove_marks: an op for the end of a session that was not lost.
    """

    def __init__(self, devices: Iterable[str]) -> None:
        name = "synchronous_begun"
        marks = [unsaved_variable(device, name, False) for device in sorted(set(devices))]
        self.before = tf.reduce_any([value_of(mark, False) for mark in marks])
        self.set_marks = tf.group(*(mark.assign(True, read_value=False) for mark in marks))
        self.remove_marks = tf.group(*(mark.assign(False, read_value=False) for mark in marks))
