"""LSTMs whose state is an image (https://arxiv.org/abs/1506.04214, without its peepholes)."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells


class ConvLSTMCell(cells.RNNCell):
    """An LSTM that convolves where others multiply by a matrix.

    Args:
      conv_ndims: 1, 2 or 3 dimensions that are convolved.
      input_shape: of an input, its channels last, without the batch.
      output_channels: of the state and the output.
      kernel_shape: of the kernel, one size per dimension.
      use_bias: whether there is a bias.
      skip_connection: False.
      forget_bias: added to the forget gate.
      initializers: not used, as in TensorFlow 1.
      name: of the cell.

    Raises:
      ValueError: for shapes of another length, or a `skip_connection`: in TensorFlow 1 the state
        had another shape after a step than before.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        del initializers
        if skip_connection:
            raise ValueError(f"skip_connection must be False, got {skip_connection}")
        if len(input_shape) != conv_ndims + 1 or len(kernel_shape) != conv_ndims:
            raise ValueError(
                f"input_shape and kernel_shape must have {conv_ndims + 1} and {conv_ndims} sizes, "
                f"got {input_shape} and {kernel_shape}"
            )
        super().__init__(name=name)
        self._size = [*input_shape[:-1], output_channels]
        self._kernel = [*kernel_shape, input_shape[-1] + output_channels, 4 * output_channels]
        self._use_bias = use_bias
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        """An `LSTMStateTuple` of shapes."""
        return cells.LSTMStateTuple(self.output_size, self.output_size)

    @property
    def output_size(self) -> tf.TensorShape:
        """The shape of an output, its channels last."""
        return tf.TensorShape(self._size)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """A step: inputs float [batch, ..., channels]."""
        memory, output = state
        kernel = tf.get_variable("kernel", self._kernel, inputs.dtype)
        gates = tf.nn.convolution(tf.concat([inputs, output], -1), kernel, "SAME")
        if self._use_bias:
            zeros = tf.zeros_initializer()
            gates += tf.get_variable("biases", self._kernel[-1:], inputs.dtype, zeros)
        enters, new, forgets, leaves = tf.split(gates, 4, axis=-1)
        memory = tf.sigmoid(forgets + self._forget_bias) * memory
        memory += tf.sigmoid(enters) * tf.tanh(new)
        output = tf.tanh(memory) * tf.sigmoid(leaves)
        return output, cells.LSTMStateTuple(memory, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of one dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of two dimensions."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` of three dimensions."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
