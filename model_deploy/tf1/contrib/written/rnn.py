"""`tf.contrib.rnn`: the cells that TensorFlow's `rnn_cell` does not have, and loops over them.

Names and shapes of variables are those of TensorFlow 1.15, so its checkpoints load.
"""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import abc
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells


class LSTMBlockCell(cells.LSTMCell):  # type: ignore[misc] - tf-keras has no types
    """`LSTMCell` in one op; here it is made of several, which compute the same.

    Args:
      num_units: size of the state.
      forget_bias: added to the forget gate.
      cell_clip: the greatest size of a value of the cell's state; None or less than 0 for none.
      use_peephole: whether the gates see the state.
      dtype: of the variables.
      reuse: whether variables are those that are there.
      name: of the cell.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: Any = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes=use_peephole,
            cell_clip=_clip(cell_clip),
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class GRUBlockCellV2(cells.GRUCell):  # type: ignore[misc]
    """`GRUCell` in one op; here it is made of several, which compute the same.

    Args:
      num_units: size of the state.
      cell_size: the same, as it was called first.
      reuse: whether variables are those that are there.
      name: of the cell.

    Raises:
      ValueError: unless one of the sizes is given.
    """

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: Any = None,
        name: str = "gru_cell",
        **kwargs: Any,
    ) -> None:
        if (num_units is None) == (cell_size is None):
            raise ValueError(
                f"num_units or cell_size must be given, one of the two, got {num_units} and "
                f"{cell_size}"
            )
        size = cell_size if num_units is None else num_units
        super().__init__(size, reuse=reuse, name=name, **kwargs)


class GRUBlockCell(GRUBlockCellV2):
    """`GRUBlockCellV2` whose variables have the names `w_ru`, `b_ru`, `w_c` and `b_c`."""

    _NAMES = ("w_ru", "b_ru", "w_c", "b_c")

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables for inputs [batch, depth]."""
        depth = tf.TensorShape(inputs_shape).as_list()[-1] + self._num_units
        sizes = 2 * self._num_units, self._num_units
        weights, biases, candidate, candidate_bias = self._NAMES
        self._gate_kernel = self.add_weight(weights, [depth, sizes[0]])
        self._gate_bias = self.add_weight(
            biases, [sizes[0]], initializer=tf.constant_initializer(1.0)
        )
        self._candidate_kernel = self.add_weight(candidate, [depth, sizes[1]])
        self._candidate_bias = self.add_weight(
            candidate_bias, [sizes[1]], initializer=tf.constant_initializer(0.0)
        )
        self.built = True


class LayerNormBasicLSTMCell(cells.RNNCell):  # type: ignore[misc]
    """An LSTM with layer normalization and with dropout of what enters the state.

    Layer normalization: https://arxiv.org/abs/1607.06450. Dropout without loss of memory:
    https://arxiv.org/abs/1603.05118.

    Args:
      num_units: size of the state.
      forget_bias: added to the forget gate.
      input_size: not used.
      activation: of the state; tanh by default.
      layer_norm: whether gates and state are normalized; if not, there is a bias.
      norm_gain: `gamma` at the start.
      norm_shift: `beta` at the start.
      dropout_keep_prob: the probability that a value stays; 1.0 is no dropout.
      dropout_prob_seed: of the dropout.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: Any = None,
    ) -> None:
        del input_size
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """An `LSTMStateTuple` of sizes."""
        return cells.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """The size of the state."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        memory, output = state
        everything = tf.concat([inputs, output], 1)
        kernel = tf.get_variable(
            "kernel", [everything.shape.as_list()[1], 4 * self._num_units], everything.dtype
        )
        gates = tf.matmul(everything, kernel)
        if not self._layer_norm:
            gates += tf.get_variable("bias", [4 * self._num_units], everything.dtype)
        names = "input", "transform", "forget", "output"
        enters, new, forgets, leaves = (
            self._norm(gate, name)
            for gate, name in zip(tf.split(gates, 4, axis=1), names, strict=True)
        )
        new = self._activation(new)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = tf.nn.dropout(new, keep_prob=self._keep_prob, seed=self._seed)
        memory = memory * tf.sigmoid(forgets + self._forget_bias) + tf.sigmoid(enters) * new
        memory = self._norm(memory, "state")
        output = self._activation(memory) * tf.sigmoid(leaves)
        return output, cells.LSTMStateTuple(memory, output)

    def _norm(self, values: Any, scope: str) -> Any:
        """Values [batch, n] with mean 0 and variance 1 in each row, times gamma, and beta."""
        if not self._layer_norm:
            return values
        size = values.shape.as_list()[-1:]
        with tf.variable_scope(scope):
            gain, shift = (
                tf.get_variable(name, size, values.dtype, tf.constant_initializer(start))
                for name, start in (("gamma", self._norm_gain), ("beta", self._norm_shift))
            )
        mean, variance = tf.nn.moments(values, [1], keep_dims=True)
        return tf.nn.batch_normalization(values, mean, variance, shift, gain, 1e-12)


class UGRNNCell(cells.RNNCell):  # type: ignore[misc]
    """One gate between the state and what is new (https://arxiv.org/abs/1611.09913, section 2.4).

    Args:
      num_units: size of the state.
      initializer: of the weights.
      forget_bias: added to the gate.
      activation: of what is new; tanh by default.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Any = tf.tanh,
        reuse: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """The size of the state."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        scope = tf.get_variable_scope()
        with tf.variable_scope(scope, initializer=self._initializer):
            gate, new = tf.split(linear([inputs, state], 2 * self._num_units), 2, axis=1)
        gate = tf.sigmoid(gate + self._forget_bias)
        state = gate * state + (1 - gate) * self._activation(new)
        return state, state


class _Around(cells.RNNCell):  # type: ignore[misc]
    """A cell around another one, whose state it has."""

    def __init__(self, cell: Any, reuse: Any = None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell inside."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)


class InputProjectionWrapper(_Around):
    """A linear layer below a cell.

    Args:
      cell: the cell.
      num_proj: the size of its inputs.
      activation: of the layer, or None.
      input_size: not used.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Any = None,
        input_size: Any = None,
        reuse: Any = None,
    ) -> None:
        del input_size
        super().__init__(cell, reuse)
        self._size = num_proj
        self._activation = activation or tf.identity

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        return self._cell(self._activation(linear([inputs], self._size)), state)  # type: ignore[no-any-return]


class OutputProjectionWrapper(_Around):
    """A linear layer above a cell.

    Args:
      cell: the cell.
      output_size: the size of the layer.
      activation: of the layer, or None.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None
    ) -> None:
        super().__init__(cell, reuse)
        self._size = output_size
        self._activation = activation or tf.identity

    @property
    def output_size(self) -> int:
        """That of the layer."""
        return self._size

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, depth]."""
        output, state = self._cell(inputs, state)
        return self._activation(linear([output], self._size)), state


class EmbeddingWrapper(_Around):
    """A table of embeddings below a cell, the variable `embedding`.

    Args:
      cell: the cell.
      embedding_classes: number of tokens.
      embedding_size: the size of the cell's inputs.
      initializer: of the table; by default that of the scope, or uniform with variance 1.
      reuse: whether variables are those that are there.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: Any = None,
    ) -> None:
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "embedding_classes and embedding_size must be over 0, got "
                f"{embedding_classes} and {embedding_size}"
            )
        super().__init__(cell, reuse)
        self._shape = embedding_classes, embedding_size
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: tokens, integers [batch]."""
        dtype = tf.nest.flatten(state)[0].dtype
        start = self._initializer or tf.get_variable_scope().initializer
        start = start or tf.random_uniform_initializer(-(3**0.5), 3**0.5)
        table = tf.get_variable("embedding", list(self._shape), dtype, start)
        embedded = tf.nn.embedding_lookup(table, tf.reshape(inputs, [-1]))
        return self._cell(embedded, state)  # type: ignore[no-any-return]


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
        self._cell_clip = _clip(cell_clip)
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


def _clip(cell_clip: float | None) -> float | None:
    return None if cell_clip is None or cell_clip < 0 else cell_clip


def linear(args: Sequence[Any], output_size: int, bias: bool = True) -> Any:
    """Tensors [batch, ...] side by side, times the variable `kernel`, plus `bias`.

    Args:
      args: float [batch, depth] each.
      output_size: the size of the result.
      bias: whether there is one, of zeros at the start.

    Returns:
      Float [batch, output_size].
    """
    together = tf.concat(list(args), 1) if len(args) > 1 else args[0]
    shape = [together.shape.as_list()[1], output_size]
    result = tf.matmul(together, tf.get_variable("kernel", shape, together.dtype))
    if not bias:
        return result
    start = tf.zeros_initializer()
    return result + tf.get_variable("bias", [output_size], together.dtype, start)


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


def transpose_batch_time(x: Any) -> Any:
    """A tensor [a, b, ...] as [b, a, ...]."""
    x = tf.convert_to_tensor(x)
    return tf.transpose(x, [1, 0, *range(2, x.shape.ndims)])


def best_effort_input_batch_size(flat_input: Sequence[Any]) -> Any:
    """The batch size of tensors [steps, batch, ...]: an integer where one of them knows it."""
    for each in flat_input:
        known = each.shape.as_list()[1] if each.shape.ndims and each.shape.ndims > 1 else None
        if known is not None:
            return known
    return tf.shape(flat_input[0])[1]
