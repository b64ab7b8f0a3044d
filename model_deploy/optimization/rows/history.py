"""`History`: what a table's rows have missed, as a few numbers for each of the last steps."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals

# Steps that are remembered, a power of two.  In half as many each row is brought up to date.
STEPS_KEPT = 8192
# In how many steps each row is brought up to date; twice as many would do, if none were skipped.
ROUND = STEPS_KEPT // 2


class History:
    """Sums over the steps since each of the last `STEPS_KEPT` steps, on the table's device.

    The numbers at place `t % STEPS_KEPT` say what a row has missed that step t was the last to
    change.  A row that has missed nothing has `fresh`; so has step t + 1 before it is made, so that
    rows which are read in the middle of an update miss nothing.

    Args:
      numbers: float64 variable, [STEPS_KEPT, numbers].
      steps: int64 scalar variable, the steps made.
      fresh: numbers of a row that has missed nothing.
    """

    def __init__(self, numbers: Any, steps: Any, fresh: Sequence[float]) -> None:
        self.numbers = numbers
        self.steps = steps
        self._fresh = np.array(fresh)

    def of_rows(self, last: Any) -> Any:
        """Returns the numbers, float64 [..., numbers], of rows with these last steps, int64."""
        return gather(self.numbers, _place(last))

    def add_step(
        self, terms: Any = None, change: Callable[[Any], Any] | None = None
    ) -> tf.Operation:
        """Counts a step, after all rows that it touches are changed.

        Args:
          terms: float64, [steps, numbers]: what the step adds to what was missed since the step
            before it, since the one before that, and so on; or None.
          change: None, or what the step makes of all numbers, before `terms` are added.
        """
        step = self.steps.read_value() + 1
        changed = []
        if change is not None:
            changed = [self.numbers.assign(change(self.numbers.read_value()), read_value=False)]
        if terms is not None:
            with tf.control_dependencies(changed):
                places = _place(step - tf.range(1, terms.shape[0] + 1, dtype=tf.int64))
                changed = [tf.group(tf.scatter_add(self.numbers, places, terms))]
        with tf.control_dependencies(changed):
            # Of rows that this step touches, and of those that the next one will.
            places = _place(tf.stack([step, step + 1]))
            fresh = tf.constant(np.stack([self._fresh, self._fresh]))
            changed = [tf.group(tf.scatter_update(self.numbers, places, fresh))]
        with tf.control_dependencies(changed):
            return tf.group(self.steps.assign_add(1, use_locking=True, read_value=False))

    def due_rows(self, num_rows: int) -> Any:
        """Returns the rows, int64, whose turn it is to be brought up to date in this step."""
        each = -(-num_rows // ROUND)
        turn = tf.bitwise.bitwise_and(self.steps.read_value(), ROUND - 1)
        start = tf.minimum(turn * each, num_rows)
        return tf.range(start, tf.minimum(start + each, num_rows), dtype=tf.int64)


def gather(variable: Any, rows: Any) -> Any:
    """Returns rows of a variable as it is now, [..., *its further axes]."""
    # A reference variable has one cached read, which may be of an earlier moment.
    return tf.gather(
        variable if internals.is_resource_variable(variable) else variable.read_value(), rows
    )


def _place(steps: Any) -> Any:
    return tf.bitwise.bitwise_and(steps, tf.constant(STEPS_KEPT - 1, tf.int64))
