"""`Receipts`: what a replica hands in for an update counts once, however often it hands it in."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers.stamps import NO_STEP
from model_deploy.parameter_servers.unsaved import unsaved_variable


class Receipts:
    """The stamps of what each replica has handed in to an accumulator last, beside it.

    A replica that is killed, or loses its connections, while it waits for an update makes that step
    anew in its next session; so does one whose step TensorFlow refuses.  Without receipts its
    gradient would then count twice, in place of another replica's.

    Args:
      name: of the accumulator.
      device: of the accumulator.
      num_replicas: number of replicas.
      replica_id: index of this one.
    """

    def __init__(self, name: str, device: str, num_replicas: int, replica_id: int) -> None:
        self._device, self._replica_id = device, replica_id
        self._none = np.full(num_replicas, NO_STEP, np.int64)
        self._stamps = unsaved_variable(device, f"{name}_receipts", self._none)

    def once(self, stamp: Any, hand_in: Callable[[Any], Any]) -> Any:
        """Returns an op that hands in what this replica has, unless it did so with this stamp.

        Args:
          stamp: an int64 scalar, see `Stamps`.
          hand_in: takes the stamp, or one of a step whose gradients are dropped; returns an op.
        """
        with tf.device(self._device):
            own = tf.gather(self._stamps, self._replica_id)
            is_new = tf.not_equal(own, stamp)
            handed_in = hand_in(tf.where(is_new, stamp, tf.constant(NO_STEP, tf.int64)))
            with tf.control_dependencies([handed_in]):
                return tf.raw_ops.ResourceScatterUpdate(
                    resource=self._stamps.handle, indices=self._replica_id, updates=stamp
                )

    def start(self) -> Any:
        """Returns an op that a session starts with, which leaves receipts that there are."""
        with tf.device(self._device):
            return tf.cond(self._stamps.is_initialized(), tf.no_op, lambda: tf.group(self.forget()))

    def forget(self) -> Any:
        """Returns an op that drops the receipts of all replicas."""
        with tf.device(self._device):
            return self._stamps.assign(self._none, read_value=False)
