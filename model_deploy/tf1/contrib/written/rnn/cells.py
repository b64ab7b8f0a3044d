"""Cells that TensorFlow's `rnn_cell` does not have.

Names and shapes of variables are those of TensorFlow 1.15, so its checkpoints load.
"""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written.rnn.linear import linear


class LSTMBlockCell(cells.LSTMCell):
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
            cell_clip=clip_of(cell_clip),
            forget_bias=forget_bias,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class GRUBlockCellV2(cells.GRUCell):
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


class LayerNormBasicLSTMCell(cells.RNNCell):
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


class UGRNNCell(cells.RNNCell):
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


def clip_of(cell_clip: float | None) -> float | None:
    """The clip of a cell, None where it is less than 0."""
    return None if cell_clip is None or cell_clip < 0 else cell_clip


class NASCell(cells.RNNCell):
    """The cell that a search has found (B. Zoph and Q. V. Le, https://arxiv.org/abs/1611.01578).

    Figure 8 of the paper: eight pairs of a product with the inputs and one with the output before.

    Args:
      num_units: size of the cell's state.
      num_proj: size of the output, to which it is projected; None is `num_units`.
      use_bias: whether products with the output before have a bias.
      reuse: whether variables are those that are there.
      name: of the cell.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: Any = None,
        name: str = "nas_cell",
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units, self._num_proj, self._use_bias = num_units, num_proj, use_bias

    @property
    def state_size(self) -> Any:
        """An `LSTMStateTuple` of sizes."""
        return cells.LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables for inputs [batch, depth]."""
        depth, width = tf.TensorShape(inputs_shape).as_list()[-1], 8 * self._num_units
        self._kernel = self.add_weight("kernel", [depth, width])
        self._recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, width])
        self._bias = None
        if self._use_bias:
            self._bias = self.add_weight("bias", [width], initializer=tf.zeros_initializer())
        self._projection = None
        if self._num_proj is not None:
            sizes = [self._num_units, self._num_proj]
            self._projection = self.add_weight("projection_weights", sizes)
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Output [batch, output size] and state after inputs [batch, depth]."""
        memory, output = state
        before = tf.matmul(output, self._recurrent_kernel)
        if self._bias is not None:
            before = tf.nn.bias_add(before, self._bias)
        i = tf.split(tf.matmul(inputs, self._kernel), 8, 1)
        h = tf.split(before, 8, 1)
        first = tf.tanh(tf.sigmoid(i[0] + h[0]) * tf.nn.relu(i[1] + h[1]))
        second = tf.tanh(tf.sigmoid(i[2] + h[2]) + tf.nn.relu(i[3] * h[3]))
        third = tf.tanh(tf.tanh(i[4] + h[4]) * tf.sigmoid(i[5] + h[5]))
        fourth = tf.sigmoid(tf.tanh(i[6] + h[6]) + tf.sigmoid(i[7] + h[7]))
        memory = tf.tanh(first + memory) * second
        output = tf.tanh(memory * tf.tanh(third + fourth))
        if self._projection is not None:
            output = tf.matmul(output, self._projection)
        return output, cells.LSTMStateTuple(memory, output)
