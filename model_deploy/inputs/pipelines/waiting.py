"""Measures how long a step waits for its data."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from model_deploy import internals


def timed(iterators: Sequence[Any]) -> tuple[list[dict[str, Any]], Any]:
    """Gets the next elements of iterators, and the time until all of them have arrived.

    Args:
      iterators: iterators over dicts of tensors, or tuples of tensors, of any shapes.  An iterator
        that is listed several times gives consecutive elements.

    Returns:
      `(elements, wait_secs)`: one element for each iterator, and the seconds, a float64 []; NaN if
      ops are deterministic.
    """
    with tf.device("CPU:0"):
        start = _now()
    elements: list[dict[str, Any]] = []
    latest: dict[int, list[Any]] = {}
    for iterator in iterators:
        with tf.control_dependencies(latest.get(id(iterator), [start])):
            elements.append(iterator.get_next())
        latest[id(iterator)] = tf.nest.flatten(elements[-1])
    with (
        tf.control_dependencies(tf.nest.flatten(elements)),
        tf.device("CPU:0"),
    ):
        wait_secs = tf.subtract(_now(), start, name="wait_secs")
    return elements, wait_secs


def _now() -> Any:
    """Returns the time in seconds, a float64 []; NaN if ops are deterministic, without a clock."""
    # One op in either case, as default seeds depend on the number of ops in the graph.
    return (
        tf.constant(math.nan, tf.float64) if internals.ops_are_deterministic() else tf.timestamp()
    )
