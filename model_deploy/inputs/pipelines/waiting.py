"""How long a step waits for its data."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from model_deploy import internals


def timed(iterators: Sequence[Any]) -> tuple[list[dict[str, Any]], Any]:
    """The next elements of the iterators, and the time until all of them were there.

    Args:
      iterators: give dicts of tensors of any shapes.  One that is there several times gives its
        elements in that order.

    Returns:
      `(elements, wait_secs)`: one element for each of them, and the seconds, a float64 []; NaN
      where ops are deterministic.
    """
    with tf.device("CPU:0"):
        start = _now()
    elements: list[dict[str, Any]] = []
    latest: dict[int, list[Any]] = {}
    for iterator in iterators:
        with tf.control_dependencies(latest.get(id(iterator), [start])):
            elements.append(iterator.get_next())
        latest[id(iterator)] = list(elements[-1].values())
    with (
        tf.control_dependencies([value for each in elements for value in each.values()]),
        tf.device("CPU:0"),
    ):
        wait_secs = tf.subtract(_now(), start, name="wait_secs")
    return elements, wait_secs


def _now() -> Any:
    """Seconds by TensorFlow's clock, a float64 []; it has none where ops are deterministic."""
    # One op in both cases: seeds that nobody gives follow from the number of ops before.
    return (
        tf.constant(math.nan, tf.float64) if internals.ops_are_deterministic() else tf.timestamp()
    )
