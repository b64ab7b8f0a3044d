"""`UpdateCount`: how often variables on a parameter server have been updated; replicas wait."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers.accumulators import ANY_STEP, replaced
from model_deploy.parameter_servers.stamps import NO_STEP
from model_deploy.parameter_servers.unsaved import unsaved_variable, value_of

_ZERO = np.int64(0)


class UpdateCount:
    """Counts the updates of variables that are updated together, beside them.

    A replica waits in an accumulator of its own, which is empty but for what wakes it.  It looks at
    the count, too: it can be woken twice, or be started again, and nothing is missed.

    Args:
      name: of the count.
      device: of the variables.
      num_replicas: number of replicas that wait.
    """

    def __init__(self, name: str, device: str, num_replicas: int) -> None:
        self._device = device
        with tf.device(device):
            self._count = unsaved_variable(device, name, _ZERO)
            self._waits = [
                tf.ConditionalAccumulator(tf.float32, shape=(), shared_name=f"{name}_{i}")
                for i in range(num_replicas)
            ]

    def set(self, number: Any) -> Any:
        """Returns an op that makes `number`, an int64 scalar, the count."""
        with tf.device(self._device):
            return self._count.assign(number, read_value=False)

    def reach(self, number: Any) -> Any:
        """Returns an op that sets the count and lets go who waits for at most so many updates."""
        with tf.control_dependencies([self.set(number)]):
            return self._wake(number)

    def let_go(self) -> Any:
        """Returns an op that ends one wait of each replica, now or when it begins."""
        return self._wake(tf.constant(ANY_STEP, tf.int64))

    def forget(self, replica_id: int) -> Any:
        """Returns an op that drops what was to end a wait of a replica, of an earlier session."""
        with tf.device(self._device):
            return replaced(self._waits[replica_id], 0.0)

    def wait(self, replica_id: int, number: Any) -> Any:
        """Returns an op that is done when the variables have been updated so many times.

        Args:
          replica_id: of this process.
          number: an int64 scalar.
        """
        own = self._waits[replica_id]
        with tf.device(self._device):
            with tf.control_dependencies([own.set_global_step(number)]):
                is_reached = value_of(self._count, _ZERO) >= number
            at_once = tf.where(is_reached, number, tf.constant(NO_STEP, tf.int64))
            with tf.control_dependencies([own.apply_grad(0.0, local_step=at_once)]):
                return own.take_grad(1).op

    def _wake(self, step: Any) -> Any:
        with tf.device(self._device):
            return tf.group(*(each.apply_grad(0.0, local_step=step) for each in self._waits))
