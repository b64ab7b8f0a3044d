"""`Begun`: whether synchronous steps have begun on the parameter servers before this session."""

from collections.abc import Iterable

import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers.unsaved import unsaved_variable


class Begun:
    """A mark on each parameter server, of which one that is started again knows nothing.

    Args:
      devices: devices on the parameter servers.

    Attributes:
      before: whether any server has its mark, a bool scalar.
      marked: an op that marks all servers.
    """

    def __init__(self, devices: Iterable[str]) -> None:
        marks = [unsaved_variable(each, "synchronous_begun", True) for each in sorted(set(devices))]
        self.before = tf.reduce_any([mark.is_initialized() for mark in marks])
        self.marked = tf.group(*(mark.initializer for mark in marks))
