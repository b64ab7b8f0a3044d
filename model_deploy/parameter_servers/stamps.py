"""`Stamps`: of which step, and of which try to make it, a gradient on the parameter servers is."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.parameter_servers.unsaved import unsaved_variable, value_of

# An accumulator always drops what is of this step.
NO_STEP = -1
# A stamp has the global step in its lower bits, and the number of earlier tries above.
_STEP_BITS = 40
_NO_TRY = np.int64(0)


class Stamps:
    """Stamps that grow with the global step, and each time that a step is made anew.

    Gradients of an earlier try are dropped like those of an earlier step, whenever they arrive.

    Args:
      global_step: the global step, an integer scalar variable.
    """

    def __init__(self, global_step: Any) -> None:
        self._global_step = global_step
        name = "synchronous_tries"
        self._tries = unsaved_variable(global_step.device, name, _NO_TRY)

    def now(self) -> Any:
        """Returns the stamp of the next update, an int64 scalar beside the global step.

        It is read after the control dependencies of the caller.
        """
        with tf.device(self._global_step.device):
            step = tf.cast(self._global_step.read_value(), tf.int64)
            return step + tf.bitwise.left_shift(value_of(self._tries, _NO_TRY), _STEP_BITS)

    def next_try(self, is_needed: Any = True) -> Any:
        """Returns an op after which the step is made anew, where `is_needed`, a bool scalar."""
        with tf.device(self._global_step.device):
            tries = value_of(self._tries, _NO_TRY) + tf.cast(is_needed, tf.int64)
            return self._tries.assign(tries, read_value=False)


def step_of(stamp: Any) -> Any:
    """Returns the global step before the update that a stamp, an int64 scalar, is of."""
    return tf.bitwise.bitwise_and(stamp, tf.constant((1 << _STEP_BITS) - 1, tf.int64))
