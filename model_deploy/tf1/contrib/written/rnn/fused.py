"""Cells that make all steps in one call."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import abc
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written.rnn.cells import clip_of


class FusedRNNCell(abc.ABC):
    """Many steps of a cell in one call."""

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Outputs and final state for inputs [steps, batch, depth], or a list of steps."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell, step by step, where many steps in one call are wanted.

    Args:
      cell: an `RNNCell`.
      use_dynamic_rnn: whether by `dynamic_rnn` or by `static_rnn`.
    """

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._is_dynamic = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        is_list = isinstance(inputs, list)
        options = {
            "initial_state": initial_state,
            "dtype": dtype,
            "sequence_length": sequence_length,
            "scope": scope,
        }
        if self._is_dynamic:
            steps = tf.stack(inputs) if is_list else inputs
            outputs, state = tf.nn.dynamic_rnn(self._cell, steps, time_major=True, **options)
            return (tf.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else tf.unstack(inputs)
        outputs, state = tf.nn.static_rnn(self._cell, steps, **options)
        return (outputs if is_list else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A fused cell that reads from the end to the start.

    Args:
      cell: the fused cell.
    """

    def __init__(self, cell: FusedRNNCell) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        def reverse(steps: Any) -> Any:
            if isinstance(steps, list) and sequence_length is None:
                return steps[::-1]
            if isinstance(steps, list):
                return tf.unstack(reverse(tf.stack(steps)))
            if sequence_length is None:
                return tf.reverse(steps, [0])
            return tf.reverse_sequence(steps, sequence_length, seq_axis=0, batch_axis=1)

        outputs, state = self._cell(
            reverse(inputs),
            initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return reverse(outputs), state


class LSTMBlockFusedCell(FusedRNNCell):
    """All steps of an LSTM in one op, `BlockLSTM`.

    Args:
      num_units: size of the state.
      forget_bias: added to the forget gate.
      cell_clip: the greatest size of a value of the cell's state; None or less than 0 for none.
      use_peephole: whether the gates see the state.
      reuse: whether variables are those that are there.
      dtype: of the variables; float32 by default.
      name: of the scope of the variables.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: Any = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = clip_of(cell_clip)
        self._use_peephole = use_peephole
        self._reuse = reuse
        self._dtype = tf.as_dtype(dtype or tf.float32)
        self._name = name
        self._scope: Any = None

    @property
    def num_units(self) -> int:
        """The size of the state."""
        return self._num_units

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """All steps.

        Args:
          inputs: float [steps, batch, depth], or a list of steps.
          initial_state: a pair of the state and the output before the first step; 0 by default.
          dtype: of the zeros of such a state.
          sequence_length: integers [batch]; behind the end outputs are 0 and the state stays.
          scope: of the variables.

        Returns:
          Outputs, like the inputs, and an `LSTMStateTuple`.
        """
        is_list = isinstance(inputs, list)
        inputs = tf.stack(inputs) if is_list else tf.convert_to_tensor(inputs)
        steps, batch = tf.shape(inputs)[0], tf.shape(inputs)[1]
        if initial_state is None:
            zeros = tf.zeros([batch, self._num_units], dtype or inputs.dtype)
            initial_state = zeros, zeros
        with tf.variable_scope(scope or self._scope or self._name, reuse=self._reuse) as used:
            variables = self._variables(inputs.shape.as_list()[2])
        if scope is None:  # a second call has the variables of the first
            self._scope, self._reuse = used, True
        if sequence_length is None:
            lengths, longest = None, steps
        else:
            lengths = tf.cast(sequence_length, tf.int32)
            longest = tf.reduce_max(lengths)
        _, memory, _, _, _, _, outputs = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(longest, tf.int64),
            x=inputs,
            cs_prev=initial_state[0],
            h_prev=initial_state[1],
            **variables,
            forget_bias=self._forget_bias,
            cell_clip=-1.0 if self._cell_clip is None else self._cell_clip,
            use_peephole=self._use_peephole,
        )
        memory, outputs, state = _ended(memory, outputs, initial_state, lengths, steps)
        outputs.set_shape(inputs.shape[:2].concatenate(self._num_units))
        return (tf.unstack(outputs) if is_list else outputs), cells.LSTMStateTuple(*state)

    def _variables(self, depth: int) -> dict[str, Any]:
        units, dtype = self._num_units, self._dtype
        found = {
            "w": tf.get_variable("kernel", [depth + units, 4 * units], dtype),
            "b": tf.get_variable("bias", [4 * units], dtype, tf.zeros_initializer()),
        }
        for gate in "ifo":
            found[f"wc{gate}"] = (
                tf.get_variable(f"w_{gate}_diag", [units], dtype)
                if self._use_peephole
                else tf.zeros([units], dtype)
            )
        return found


def _ended(memory: Any, outputs: Any, initial: Any, lengths: Any, steps: Any) -> tuple[Any, ...]:
    """States and outputs [steps, batch, units] with 0 behind the ends; the state at the ends."""
    if lengths is None:
        return memory, outputs, (memory[-1], outputs[-1])
    is_in = tf.transpose(tf.sequence_mask(lengths, steps))[..., tf.newaxis]
    mask = tf.cast(is_in, outputs.dtype)
    places = tf.stack([lengths, tf.range(tf.shape(outputs)[1])], 1)
    state = tuple(
        tf.gather_nd(tf.concat([before[tf.newaxis], after], 0), places)
        for before, after in zip(initial, (memory, outputs), strict=True)
    )
    return memory, outputs * mask, state
