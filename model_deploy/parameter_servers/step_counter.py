"""`StepCounter`: the global step before and after an update, and so its staleness."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class StepCounter:
    """Reads the global step before and after one update, on the step's device.

    With the step on a parameter server, one transfer after the update brings both to the worker,
    and also shows that the update is complete.

    Adds ops to the default graph, and reads `GLOBAL_STEP`.

    Args:
      is_remote: whether the global step is on a parameter server.
      others_update: whether other replicas or clones update meanwhile, which makes staleness.
    """

    def __init__(self, *, is_remote: bool, others_update: bool = True) -> None:
        self._is_remote = is_remote
        # Read at the start of a step, as the clones read the variables.
        self._at_start = _read_step("step_at_start") if others_update else None

    def at_update(self, computed: Sequence[Any]) -> Any:
        """Returns the global step once `computed` is done: an int64 scalar on the step's device.

        Args:
          computed: ops or tensors of any shapes.
        """
        # One op to wait for: each control input from another process is a separate message.
        with tf.control_dependencies(computed):
            done = tf.no_op(name="computed")
        with tf.control_dependencies([self._at_start, done]):
            return _read_step("step_at_update")

    def after(self, updates: Sequence[Any], at_update: Any = None) -> tuple[Any, Any]:
        """Returns staleness and global step after the update by `updates`.

        Args:
          updates: ops that update variables and the global step.
          at_update: the result of `at_update`; if None, all other updates until the end count.

        Returns:
          How many updates others made since the start of the step, None if there are no others,
          and the global step after the update: int64 scalars on the device of the caller.
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
        # One local op for all uses: each edge between devices would be a transfer.
        return tf.identity(count, name="count_here") if self._is_remote else count


def _read_step(name: str) -> Any:
    global_step = tf.train.get_global_step()
    # A copy: the value read from a reference variable changes when the variable does.
    with tf.device(global_step.device):
        return tf.raw_ops.DeepCopy(x=global_step.read_value(), name=name)
