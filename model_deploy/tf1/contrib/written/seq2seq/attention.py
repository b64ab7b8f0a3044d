"""Cells that look at a memory: the attention of Luong and of Bahdanau."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import abc
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells, layers


class AttentionMechanism(abc.ABC):
    """Weights of the steps of a memory.

    Args:
      num_units: the depth in which queries and the memory are compared.
      memory: float [batch, steps, depth].
      memory_sequence_length: integers [batch], behind which nothing is looked at; or None.
      probability_fn: from scores [batch, steps] to weights of this shape; softmax by default.
      score_mask_value: the score of steps behind the end, minus infinity by default.
      dtype: of the variables; that of the memory by default.
      name: of the ops.

    Attributes:
      values: the memory, 0 behind the ends, float [batch, steps, depth].
      keys: what queries are compared with, float [batch, steps, num_units].
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        with tf.name_scope(name, type(self).__name__, [memory]):
            memory = tf.convert_to_tensor(memory)
            self.dtype = memory.dtype if dtype is None else tf.as_dtype(dtype)
            self._num_units = num_units
            self._probability_fn = probability_fn or tf.nn.softmax
            self._mask_value = -math.inf if score_mask_value is None else score_mask_value
            self._mask = None
            if memory_sequence_length is not None:
                lengths = tf.cast(tf.convert_to_tensor(memory_sequence_length), tf.int32)
                self._mask = tf.sequence_mask(lengths, tf.shape(memory)[1])
                memory *= tf.cast(self._mask, memory.dtype)[:, :, tf.newaxis]
            self.values = memory
            self.memory_layer = layers.Dense(
                num_units, name="memory_layer", use_bias=False, dtype=self.dtype
            )
            self.keys = self.memory_layer(memory)

    @property
    def batch_size(self) -> Any:
        """Number of sequences, a tensor or, where it is known, an integer."""
        return self.keys.shape.as_list()[0] or tf.shape(self.keys)[0]

    @property
    def alignments_size(self) -> Any:
        """Number of steps of the memory, a tensor or, where it is known, an integer."""
        return self.keys.shape.as_list()[1] or tf.shape(self.keys)[1]

    @property
    def state_size(self) -> Any:
        """The size of the state, the weights of the step before."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Weights before the first step: 0, float [batch, steps]."""
        return tf.zeros([batch_size, self.alignments_size], dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first step."""
        return self.initial_alignments(batch_size, dtype)

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """The weights for a query float [batch, depth], float [batch, steps]; the next state."""
        scores = self._scores(query)
        if self._mask is not None:
            refused = tf.cast(self._mask_value, scores.dtype)
            scores = tf.where(self._mask, scores, tf.fill(tf.shape(scores), refused))
        weights = self._weights(scores, state)
        return weights, weights

    def _weights(self, scores: Any, state: Any) -> Any:
        """The weights of scores, both float [batch, steps], after those of the step before."""
        del state
        return self._probability_fn(scores)

    def _shifted(self, scores: Any) -> Any:
        """What becomes of the scores, float [batch, steps], in the scope of their variables."""
        return scores

    @abc.abstractmethod
    def _scores(self, query: Any) -> Any:
        """How well each step of the memory fits, float [batch, steps]."""


class LuongAttention(AttentionMechanism):
    """Products of a query and the keys (https://arxiv.org/abs/1508.04025).

    Args:
      num_units: the depth of the queries, and of the keys.
      memory: see `AttentionMechanism`.
      memory_sequence_length: see there.
      scale: whether products are multiplied by a variable, `attention_g`.
      probability_fn: see there.
      score_mask_value: see there.
      dtype: see there.
      name: see there.
    """

    _SCOPE = "luong_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(
            num_units, memory, memory_sequence_length, probability_fn, score_mask_value, dtype, name
        )
        self._scale = scale

    def _scores(self, query: Any) -> Any:
        if query.shape.as_list()[-1] != self._num_units:
            raise ValueError(
                f"num_units must be the depth of the queries, {query.shape.as_list()[-1]}, got "
                f"{self._num_units}"
            )
        with tf.variable_scope(None, self._SCOPE, [query]):
            scores = tf.squeeze(tf.matmul(query[:, tf.newaxis], self.keys, transpose_b=True), [1])
            if self._scale:
                scores *= tf.get_variable("attention_g", [], self.dtype, tf.ones_initializer())
            return self._shifted(scores)


class BahdanauAttention(AttentionMechanism):
    """A layer above a query and the keys (https://arxiv.org/abs/1409.0473).

    Args:
      num_units: the depth of this layer.
      memory: see `AttentionMechanism`.
      memory_sequence_length: see there.
      normalize: whether the weights of the layer have a norm of their own, `attention_g`, and a
        bias (https://arxiv.org/abs/1602.07868).
      probability_fn: see there.
      score_mask_value: see there.
      dtype: see there.
      name: see there.
    """

    _SCOPE = "bahdanau_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: float | None = None,
        dtype: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        super().__init__(
            num_units, memory, memory_sequence_length, probability_fn, score_mask_value, dtype, name
        )
        self._normalize = normalize
        self.query_layer = layers.Dense(
            num_units, name="query_layer", use_bias=False, dtype=self.dtype
        )

    def _scores(self, query: Any) -> Any:
        with tf.variable_scope(None, self._SCOPE, [query]):
            summed = self.keys + self.query_layer(query)[:, tf.newaxis]
            weights = tf.get_variable("attention_v", [self._num_units], self.dtype)
            if self._normalize:
                norm = tf.get_variable(
                    "attention_g",
                    [],
                    self.dtype,
                    tf.constant_initializer(math.sqrt(1 / self._num_units)),
                )
                summed += tf.get_variable(
                    "attention_b", [self._num_units], self.dtype, tf.zeros_initializer()
                )
                weights = norm * weights * tf.rsqrt(tf.reduce_sum(tf.square(weights)))
            return self._shifted(tf.reduce_sum(weights * tf.tanh(summed), [2]))


def hardmax(logits: Any, name: str | None = None) -> Any:
    """1 at the greatest value of each row, 0 elsewhere, of the type of the logits.

    Args:
      logits: numbers [..., n].
      name: of the ops.
    """
    with tf.name_scope(name, "Hardmax", [logits]):
        logits = tf.convert_to_tensor(logits)
        return tf.one_hot(tf.argmax(logits, -1), tf.shape(logits)[-1], dtype=logits.dtype)


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Attributes:
      cell_state: that of the cell in it.
      attention: what it looked at in the step before, float [batch, attention size].
      time: the number of steps made, int32.
      alignments: the weights of the step before, one or a tuple of one per mechanism.
      alignment_history: a `TensorArray` of all weights, or a tuple of such; () if none is kept.
      attention_state: the state of the mechanism, or a tuple.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> "AttentionWrapperState":
        """The same state with other values for some names, of the shapes of the old ones."""

        def with_shape(old: Any, new: Any) -> Any:
            if isinstance(old, tf.Tensor) and isinstance(new, tf.Tensor):
                new.set_shape(old.shape)
            return new

        new = self._replace(**kwargs)
        cloned: AttentionWrapperState = tf.nest.map_structure(with_shape, self, new)
        return cloned


class AttentionWrapper(cells.RNNCell):
    """A cell that looks at a memory after each step, and at the next step reads what it saw.

    Args:
      cell: an `RNNCell`.
      attention_mechanism: an `AttentionMechanism`, or a list of several.
      attention_layer_size: the size of a layer, without bias, above the output of the cell and
        what the weights give of the memory; None takes the latter as it is. For several
        mechanisms a list.
      alignment_history: whether the weights of all steps are kept, in the state.
      cell_input_fn: from inputs and attention to what the cell reads; by default one behind the
        other.
      output_attention: whether the attention is put out, not the output of the cell.
      initial_cell_state: state of the cell in `zero_state`, or None.
      name: of the cell.
      attention_layer: a layer, or a list, in the place of those of `attention_layer_size`.

    Raises:
      ValueError: for sizes or layers that are not as many as mechanisms, or both.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
    ) -> None:
        super().__init__(name=name)
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        self._attention_mechanisms = _as_tuple(attention_mechanism)
        self._attention_layers = self._layers(attention_layer_size, attention_layer)
        self._cell = cell
        self._keeps_history = alignment_history
        self._cell_input_fn = cell_input_fn or (lambda inputs, seen: tf.concat([inputs, seen], -1))
        self._output_attention = output_attention
        self._initial_cell_state = initial_cell_state

    def _layers(self, sizes: Any, given: Any) -> Sequence[Any]:
        mechanisms = self._attention_mechanisms
        if sizes is not None and given is not None:
            raise ValueError("attention_layer_size and attention_layer must not both be given")
        if sizes is None and given is None:
            return (None,) * len(mechanisms)
        found = _as_tuple(sizes if given is None else given)
        if len(found) != len(mechanisms):
            raise ValueError(
                f"attention layers must be {len(mechanisms)}, one per mechanism, got {len(found)}"
            )
        if given is not None:
            return found
        return tuple(
            layers.Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
            for size, mechanism in zip(found, mechanisms, strict=True)
        )

    def _one_or_all(self, values: Sequence[Any]) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def _attention_size(self) -> int:
        sizes = []
        for layer, mechanism in zip(
            self._attention_layers, self._attention_mechanisms, strict=True
        ):
            depth = mechanism.values.shape.as_list()[-1]
            if layer is not None:
                width = depth + self._cell.output_size
                shape = tf.TensorShape(layer.compute_output_shape(tf.TensorShape([None, width])))
                depth = shape.as_list()[-1]
            sizes.append(depth)
        return sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the attention, or that of the outputs of the cell."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """An `AttentionWrapperState` of sizes."""
        sizes = self._one_or_all([each.alignments_size for each in self._attention_mechanisms])
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_size,
            time=tf.TensorShape([]),
            alignments=sizes,
            alignment_history=sizes if self._keeps_history else (),
            attention_state=self._one_or_all(
                [each.state_size for each in self._attention_mechanisms]
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The state before the first step."""
        cell_state = self._initial_cell_state
        if cell_state is None:
            cell_state = self._cell.zero_state(batch_size, dtype)
        mechanisms = self._attention_mechanisms
        weights = [each.initial_alignments(batch_size, dtype) for each in mechanisms]
        history: Any = ()
        if self._keeps_history:
            history = self._one_or_all(
                [
                    tf.TensorArray(dtype, 0, dynamic_size=True, element_shape=each.shape)
                    for each in weights
                ]
            )
        return AttentionWrapperState(
            cell_state=tf.nest.map_structure(tf.identity, cell_state),
            attention=tf.zeros([batch_size, self._attention_size], dtype),
            time=tf.zeros([], tf.int32),
            alignments=self._one_or_all(weights),
            alignment_history=history,
            attention_state=self._one_or_all(
                [each.initial_state(batch_size, dtype) for each in mechanisms]
            ),
        )

    def call(self, inputs: Any, state: AttentionWrapperState) -> tuple[Any, AttentionWrapperState]:
        """A step of the cell, and a look at each memory."""
        output, cell_state = self._cell(
            self._cell_input_fn(inputs, state.attention), state.cell_state
        )
        before = state.attention_state if self._is_multi else (state.attention_state,)
        seen, weights, states = [], [], []
        for mechanism, layer, old in zip(
            self._attention_mechanisms, self._attention_layers, before, strict=True
        ):
            found, new = mechanism(output, old)
            context = tf.squeeze(tf.matmul(found[:, tf.newaxis], mechanism.values), [1])
            seen.append(context if layer is None else layer(tf.concat([output, context], 1)))
            weights.append(found)
            states.append(new)
        history = state.alignment_history
        if self._keeps_history:
            arrays = history if self._is_multi else (history,)
            history = self._one_or_all(
                [array.write(state.time, each) for array, each in zip(arrays, weights, strict=True)]
            )
        attention = tf.concat(seen, 1)
        next_state = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._one_or_all(weights),
            alignment_history=history,
            attention_state=self._one_or_all(states),
        )
        return (attention if self._output_attention else output), next_state


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, list | tuple) else (values,)
