"""`StepCounter`: the global step before and after an update, as one small tensor."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class StepCounter:
    """Reads the global step around one update, beside it.

    On a parameter server that takes one transfer to the worker, after the update; its
    arrival also says that the update is made.

    Adds ops to the default graph, and reads `GLOBAL_STEP`.

    Args:
      is_remote: whether the global step is on a parameter server.
      others_update: whether there are other updates to count.
    """

    def __init__(self, *, is_remote: bool, others_update: bool = True) -> None:
        self._is_remote = is_remote
        # Starts with the step, as the clones' own reads of the variables do.
        self._at_start = _read_step("step_at_start") if others_update else None

    def at_update(self, computed: Sequence[Any]) -> Any:
        """The global step once the ops of `computed` are done: an int64 scalar beside it.

        Args:
          computed: ops or tensors of any shapes.
        """
        # One op to wait for: what another process waits for moves to it one by one.
        with tf.control_dependencies(computed):
            done = tf.no_op(name="computed")
        with tf.control_dependencies([self._at_start, done]):
            return _read_step("step_at_update")

    def after(self, updates: Sequence[Any], at_update: Any = None) -> tuple[Any, Any]:
        """Staleness and number of the update that is made once `updates` are done.

        Args:
          updates: ops that update variables and count it.
          at_update: what `at_update` gave; without, all other updates until the end count.

        Returns:
          How many updates others made since the start of the step, None if there are no
          others, and how many there were after it: int64 scalars on the device of the caller.
        """
        if self._at_start is None:
            with tf.control_dependencies(updates):
                return None, self._here(_read_step("step_after"))
        with tf.control_dependencies([self._at_start, *updates]):
            step_after = _read_step("step_after")
        with tf.device(step_after.device):
            last = step_after - 1 if at_update is None else at_update
            staleness = tf.subtract(last, self._at_start, name="staleness")
            if not self._is_remote:
                return staleness, step_after
            counts = tf.stack([staleness, step_after], name="counts")
        staleness, step_after = tf.unstack(self._here(counts))
        return staleness, step_after

    def _here(self, count: Any) -> Any:
        # One op of this device for all who use it: each edge between devices is a transfer.
        return tf.identity(count, name="count_here") if self._is_remote else count


def _read_step(name: str) -> Any:
    global_step = tf.train.get_global_step()
    # A copy: what a reference variable is read as changes with the variable.
    with tf.device(global_step.device):
        return tf.raw_ops.DeepCopy(x=global_step.read_value(), name=name)
