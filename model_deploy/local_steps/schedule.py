"""When the exchange of a part begins, is under way, and ends; which variables are in a part."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf


class Schedule(NamedTuple):
    """The steps of the exchanges of one part of the variables.

    Attributes:
      local_steps: steps between the begins of two exchanges.
      offset: of a begin, the remainder of the step by `local_steps`.
      overlap: steps from the begin of an exchange to its end.
    """

    local_steps: int
    offset: int
    overlap: int

    def begins(self, step: Any) -> Any:
        """Whether an exchange begins when `step`, an int64 scalar, has been made: a bool scalar."""
        return tf.equal(tf.mod(step - self.offset, self.local_steps), 0)

    def ends(self, step: Any) -> Any:
        """Whether one ends when `step`, an int64 scalar, has been made: a bool scalar."""
        return tf.logical_and(self.begins(step - self.overlap), step > self.overlap)

    def row_under_way(self, step: Any) -> tuple[Any, Any]:
        """Returns what is sent beside the step after `step`, an int64 scalar.

        Returns:
          Whether an exchange is under way, a bool scalar, and the number of its steps that have
          been made, an int64 scalar.
        """
        row = tf.mod(step - self.offset, self.local_steps)
        return tf.logical_and(row < self.overlap, step > row), row


def schedules(local_steps: int, parts: int, overlap: int) -> list[Schedule]:
    """Returns the schedule of each part; their begins are spread evenly.

    >>> [schedule.offset for schedule in schedules(local_steps=20, parts=3, overlap=2)]
    [0, 6, 13]
    """
    return [Schedule(local_steps, k * local_steps // parts, overlap) for k in range(parts)]


def parts_by_bytes(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Divides variables into parts of about as many bytes: each to the one with the least so far.

    >>> parts_by_bytes([1, 5, 2, 4], parts=2)
    [[0, 1], [2, 3]]

    Args:
      sizes: bytes of each variable.
      parts: number of parts.

    Returns:
      The indices in each part, in ascending order; a part may be empty.
    """
    found: list[list[int]] = [[] for _ in range(parts)]
    filled = [0] * parts
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        least = filled.index(min(filled))
        found[least].append(k)
        filled[least] += sizes[k]
    return [sorted(part) for part in found]
