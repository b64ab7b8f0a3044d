"""Layers of cells that read in both directions."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Sequence[Any],
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Layers of `tf.nn.static_bidirectional_rnn`; each reads the outputs of the one below.

    Args:
      cells_fw: a cell for each layer, which reads forward.
      cells_bw: as many, which read backward.
      inputs: a list of steps, float [batch, depth].
      initial_states_fw: a state for each layer, or None.
      initial_states_bw: the same for the cells that read backward.
      dtype: of the zeros of states that are not given.
      sequence_length: integers [batch], or None.
      scope: of the variables, "stack_bidirectional_rnn" by default.

    Returns:
      The outputs of the last layer, a list of steps; the final states of the cells that read
      forward; of those that read backward.

    Raises:
      ValueError: for layers that are not as many.
    """

    def run(layer: int, below: Any) -> tuple[Any, Any, Any]:
        outputs, forward, backward = tf.nn.static_bidirectional_rnn(
            cells_fw[layer],
            cells_bw[layer],
            below,
            _state(initial_states_fw, layer),
            _state(initial_states_bw, layer),
            sequence_length=sequence_length,
            dtype=dtype,
        )
        return outputs, forward, backward

    given = cells_fw, cells_bw, initial_states_fw, initial_states_bw
    return _stacked(run, given, inputs, scope or "stack_bidirectional_rnn")


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, Any, Any]:
    """Layers of `tf.nn.bidirectional_dynamic_rnn`; each reads the outputs of the one below.

    Args:
      cells_fw: a cell for each layer, which reads forward.
      cells_bw: as many, which read backward.
      inputs: float [batch, steps, depth].
      initial_states_fw: a state for each layer, or None.
      initial_states_bw: the same for the cells that read backward.
      dtype: of the zeros of states that are not given.
      sequence_length: integers [batch], or None.
      parallel_iterations: see `tf.nn.dynamic_rnn`.
      time_major: whether inputs are [steps, batch, depth].
      scope: of the variables, "stack_bidirectional_rnn" by default.
      swap_memory: see `tf.nn.dynamic_rnn`.

    Returns:
      The outputs of the last layer [batch, steps, depth]; a tuple of the final states of the cells
      that read forward; of those that read backward.

    Raises:
      ValueError: for layers that are not as many.
    """

    def run(layer: int, below: Any) -> tuple[Any, Any, Any]:
        outputs, (forward, backward) = tf.nn.bidirectional_dynamic_rnn(
            cells_fw[layer],
            cells_bw[layer],
            below,
            sequence_length=sequence_length,
            initial_state_fw=_state(initial_states_fw, layer),
            initial_state_bw=_state(initial_states_bw, layer),
            dtype=dtype,
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
            time_major=time_major,
        )
        return tf.concat(outputs, 2), forward, backward

    given = cells_fw, cells_bw, initial_states_fw, initial_states_bw
    return _stacked(run, given, inputs, scope or "stack_bidirectional_rnn")


def _state(states: Any, layer: int) -> Any:
    return states[layer] if states else None


def _stacked(run: Any, given: Sequence[Any], inputs: Any, scope: Any) -> tuple[Any, Any, Any]:
    """Runs one layer above the other, the variables of each in `cell_0`, `cell_1`, ..."""
    counts = [len(each) for each in given if each is not None]
    if len(set(counts)) != 1 or not counts[0]:
        raise ValueError(f"cells and states must be as many, at least 1, got {counts}")
    forward, backward = [], []
    with tf.variable_scope(scope):
        for layer in range(counts[0]):
            with tf.variable_scope(f"cell_{layer}"):
                inputs, *states = run(layer, inputs)
            forward.append(states[0])
            backward.append(states[1])
    return inputs, tuple(forward), tuple(backward)
