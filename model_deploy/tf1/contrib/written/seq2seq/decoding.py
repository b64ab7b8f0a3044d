"""`dynamic_decode`: the loop over the steps of a decoder; `BasicDecoder`, its plain kind."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import abc
import contextlib
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written.seq2seq.helpers import Helper


class Decoder(abc.ABC):
    """What `dynamic_decode` runs step by step."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """Number of sequences."""

    @property
    @abc.abstractmethod
    def output_size(self) -> Any:
        """A structure of integers or shapes: the outputs of one sequence at one step."""

    @property
    @abc.abstractmethod
    def output_dtype(self) -> Any:
        """A structure of their types."""

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` says alone which sequences are at their end, and may take it back."""
        return False

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Which sequences are at their end before the first step, its inputs, the state."""

    @abc.abstractmethod
    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """Outputs of a step, next state, next inputs, and which sequences are at their end."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Outputs, [steps, batch, ...], and state as they are returned after the last step."""
        del sequence_lengths
        return outputs, final_state


class BasicDecoderOutput(NamedTuple):
    """What a `BasicDecoder` gives out: the outputs of its cell, and what the helper chose."""

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell whose next inputs a helper chooses.

    Args:
      cell: an `RNNCell`.
      helper: a `Helper`.
      initial_state: of the cell.
      output_layer: a layer that outputs go through, such as a `tf.layers.Dense`, or None.
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(
            output_size_of(self._cell, self._output_layer), self._helper.sample_ids_shape
        )

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        outputs = tf.nest.map_structure(lambda _: dtype, self.output_size.rnn_output)
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """The helper's, and the initial state."""
        del name
        return (*self._helper.initialize(), self._initial_state)

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """One step of the cell, the layer and the helper."""
        with tf.name_scope(name, "BasicDecoderStep", [time]):
            outputs, cell_state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            chosen = self._helper.sample(time=time, outputs=outputs, state=cell_state)
            finished, next_inputs, next_state = self._helper.next_inputs(
                time=time, outputs=outputs, state=cell_state, sample_ids=chosen
            )
        return BasicDecoderOutput(outputs, chosen), next_state, next_inputs, finished


def output_size_of(cell: Any, output_layer: Any) -> Any:
    """The size of the outputs of a cell behind a layer."""
    if output_layer is None:
        return cell.output_size
    # The layer sees them with a batch before them.
    sizes = tf.nest.map_structure(
        lambda size: tf.TensorShape([None]).concatenate(size), cell.output_size
    )
    shapes = tf.nest.map_structure(output_layer.compute_output_shape, sizes)
    return tf.nest.map_structure(lambda shape: tf.TensorShape(shape)[1:], shapes)


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs a decoder until all sequences are at their end.

    Args:
      decoder: a `Decoder`.
      output_time_major: whether outputs are returned as [steps, batch, ...].
      impute_finished: whether behind the end of a sequence its outputs are 0 and its state stays.
      maximum_iterations: the greatest number of steps, or None.
      parallel_iterations: see `tf.while_loop`.
      swap_memory: see there.
      scope: of the variables, "decoder" by default.

    Returns:
      The outputs [batch, steps, ...], the final state, and the lengths int32 [batch].

    Raises:
      ValueError: for another decoder.
    """
    if not all(hasattr(decoder, name) for name in ("initialize", "step", "output_size")):
        raise ValueError(f"decoder must be a Decoder, got {decoder!r}")
    with tf.variable_scope(scope, "decoder"):
        loop = _Loop(decoder, impute_finished, maximum_iterations)
        _, arrays, state, _, _, lengths = tf.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: tf.logical_not(
                tf.reduce_all(finished)
            ),
            loop.step,
            loop.start(),
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        # A program's own decoder may say that it has none, as contrib's did.
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(_batch_first, outputs)
    return outputs, state, lengths


class _Loop:
    """The loop of `dynamic_decode`: what it starts with, and a step of it."""

    def __init__(self, decoder: Any, impute_finished: bool, maximum_iterations: Any) -> None:
        self._decoder = decoder
        self._impute_finished = impute_finished
        self._end = maximum_iterations

    def start(self) -> tuple[Any, ...]:
        finished, inputs, state = self._decoder.initialize()
        if self._end is not None:
            finished = tf.logical_or(finished, self._end <= 0)
        sizes, dtypes = self._decoder.output_size, self._decoder.output_dtype
        batch = tf.get_static_value(tf.convert_to_tensor(self._decoder.batch_size))

        def array(size: Any, dtype: Any) -> Any:
            shape = tf.TensorShape([batch]).concatenate(size)
            return tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=shape)

        arrays = tf.nest.map_structure(array, sizes, dtypes)
        return tf.constant(0), arrays, state, inputs, finished, tf.zeros_like(finished, tf.int32)

    def step(
        self, time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
    ) -> tuple[Any, ...]:
        outputs, new_state, next_inputs, is_end = self._decoder.step(time, inputs, state)
        own = getattr(self._decoder, "tracks_own_finished", False)
        next_finished = is_end if own else tf.logical_or(is_end, finished)
        if own and hasattr(new_state, "lengths"):
            next_lengths = tf.cast(new_state.lengths, tf.int32)
        else:
            next_lengths = tf.where(finished, lengths, tf.fill(tf.shape(lengths), time + 1))
        if self._end is not None:
            next_finished = tf.logical_or(next_finished, time + 1 >= self._end)
        if self._impute_finished:
            outputs = tf.nest.map_structure(
                lambda each: tf.where(finished, tf.zeros_like(each), each), outputs
            )
            new_state = tf.nest.map_structure(
                lambda new, old: _kept(finished, new, old), new_state, state
            )
        arrays = tf.nest.map_structure(
            lambda array, output: array.write(time, output), arrays, outputs
        )
        return time + 1, arrays, new_state, next_inputs, next_finished, next_lengths


def _kept(finished: Any, new: Any, old: Any) -> Any:
    """The old state of sequences at their end; what is no tensor of sequences is the new one."""
    if isinstance(old, tf.TensorArray):
        return new
    new.set_shape(old.shape)
    return new if new.shape.ndims == 0 else tf.where(finished, old, new)


def _batch_first(output: Any) -> Any:
    """Outputs [steps, batch, ...] as [batch, steps, ...]."""
    rank = output.shape.ndims
    return output if rank is None or rank < 2 else tf.transpose(output, [1, 0, *range(2, rank)])
