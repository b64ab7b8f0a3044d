"""How long a step waits for its data."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def timed(iterators: Sequence[Any]) -> tuple[list[dict[str, Any]], Any]:
    """The next elements of the iterators, and the time until all of them were there.

    Args:
      iterators: give dicts of tensors of any shapes.

    Returns:
      `(elements, wait_secs)`: one element per iterator, and the seconds, a float64 [].
    """
    with tf.device("CPU:0"):
        start = tf.timestamp()
    with tf.control_dependencies([start]):
        elements = [iterator.get_next() for iterator in iterators]
    with (
        tf.control_dependencies([value for each in elements for value in each.values()]),
        tf.device("CPU:0"),
    ):
        wait_secs = tf.subtract(tf.timestamp(), start, name="wait_secs")
    return elements, wait_secs
