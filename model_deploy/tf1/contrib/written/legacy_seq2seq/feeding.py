"""What a decoder reads at the next step: tokens that are given, or its own."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def best_token(table: Any, projection: Any, learns: bool) -> Callable[[Any, int], Any]:
    """From the outputs of a step to the embedding of the best token."""

    def loop(output: Any, step: int) -> Any:
        del step
        scores = output if projection is None else tf.matmul(output, projection[0]) + projection[1]
        embedded = tf.nn.embedding_lookup(table, tf.argmax(scores, 1))
        return embedded if learns else tf.stop_gradient(embedded)

    return loop


def check_projection(projection: Any, num_symbols: int) -> None:
    """Refuses weights and biases of other shapes.

    Raises:
      ValueError: unless they are [outputs, num_symbols] and [num_symbols].
    """
    if projection is None:
        return
    weights, biases = map(tf.convert_to_tensor, projection)
    if not (
        weights.shape.is_compatible_with([None, num_symbols])
        and biases.shape.is_compatible_with([num_symbols])
    ):
        raise ValueError(
            f"output_projection must be [outputs, {num_symbols}] and [{num_symbols}], got "
            f"{weights.shape} and {biases.shape}"
        )


def decoded(decode: Callable[[bool], Any], feed_previous: Any) -> Any:
    """One of the two ways to decode, or where a tensor chooses, both with the same variables."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    structure = None

    def flat(feeds: bool, reuse: Any) -> list[Any]:
        nonlocal structure
        with tf.variable_scope(tf.get_variable_scope(), reuse=reuse):
            structure = decode(feeds)
        return list(tf.nest.flatten(structure))

    chosen = tf.cond(feed_previous, lambda: flat(True, None), lambda: flat(False, True))
    return tf.nest.pack_sequence_as(structure, chosen)
