"""Decoders that look at a memory after each step (https://arxiv.org/abs/1412.7449)."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import copy
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written.legacy_seq2seq.feeding import (
    best_token,
    check_projection,
    decoded,
)
from model_deploy.tf1.contrib.written.rnn import EmbeddingWrapper, OutputProjectionWrapper
from model_deploy.tf1.contrib.written.rnn.linear import linear


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` that looks at a memory after each step (https://arxiv.org/abs/1412.7449).

    Args:
      decoder_inputs: float [batch, depth], one for each step.
      initial_state: of the cell.
      attention_states: the memory, float [batch, steps, size], whose steps and size are known.
      cell: an `RNNCell`.
      output_size: of an output; that of the cell by default.
      num_heads: how many weights of the memory there are.
      loop_function: see `rnn_decoder`.
      dtype: of what is seen before the first step.
      scope: of the variables, "attention_decoder" by default.
      initial_state_attention: whether the first step reads what the first state sees, not 0.

    Returns:
      A list of outputs [batch, output_size], and the final state.

    Raises:
      ValueError: for no inputs, no heads, or an unknown shape of the memory.
    """
    if not decoder_inputs or num_heads < 1:
        raise ValueError(
            f"decoder_inputs and num_heads must be at least 1, got {len(decoder_inputs)} and "
            f"{num_heads}"
        )
    if None in attention_states.shape.as_list()[1:]:
        raise ValueError(f"attention_states must have a shape, got {attention_states.shape}")
    output_size = output_size or cell.output_size
    with tf.variable_scope(scope or "attention_decoder", dtype=dtype) as used:
        look = _Memory(attention_states, num_heads)
        batch, size = tf.shape(decoder_inputs[0])[0], attention_states.shape.as_list()[2]
        seen = [tf.zeros([batch, size], used.dtype) for _ in range(num_heads)]
        for each in seen:
            each.set_shape([None, size])
        if initial_state_attention:
            seen = look(initial_state)
        outputs: list[Any] = []
        state = initial_state
        for step, given in enumerate(decoder_inputs):
            if step:
                used.reuse_variables()
            inputs = given
            if loop_function is not None and outputs:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(outputs[-1], step)
            output, state = cell(linear([inputs, *seen], inputs.shape.as_list()[1]), state)
            with tf.variable_scope(
                tf.get_variable_scope(), reuse=True if initial_state_attention else None
            ):
                seen = look(state)
            with tf.variable_scope("AttnOutputProjection"):
                outputs.append(linear([output, *seen], output_size))
    return outputs, state


class _Memory:
    """What states see of a memory, once for each head."""

    def __init__(self, memory: Any, num_heads: int) -> None:
        _, self._length, self._size = memory.shape.as_list()
        self._hidden = tf.reshape(memory, [-1, self._length, 1, self._size])
        self._features, self._weights = [], []
        for head in range(num_heads):
            kernel = tf.get_variable(f"AttnW_{head}", [1, 1, self._size, self._size])
            self._features.append(tf.nn.conv2d(self._hidden, kernel, [1, 1, 1, 1], "SAME"))
            self._weights.append(tf.get_variable(f"AttnV_{head}", [self._size]))

    def __call__(self, state: Any) -> list[Any]:
        query, seen = tf.nest.flatten(state), []
        for head, (features, weights) in enumerate(zip(self._features, self._weights, strict=True)):
            with tf.variable_scope(f"Attention_{head}"):
                asked = tf.reshape(linear(query, self._size), [-1, 1, 1, self._size])
                scores = tf.reduce_sum(weights * tf.tanh(features + asked), [2, 3])
                shares = tf.reshape(tf.nn.softmax(scores), [-1, self._length, 1, 1])
                seen.append(tf.reduce_sum(shares * self._hidden, [1, 2]))
        return seen


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`attention_decoder` of tokens, by a table `embedding`.

    Args:
      decoder_inputs: integers [batch], one for each step.
      initial_state: see `attention_decoder`.
      attention_states: see there.
      cell: an `RNNCell`.
      num_symbols: see `embedding_rnn_decoder`.
      embedding_size: see there.
      num_heads: see `attention_decoder`.
      output_size: see there.
      output_projection: see `embedding_rnn_decoder`.
      feed_previous: see there.
      update_embedding_for_previous: see there.
      dtype: see `attention_decoder`.
      scope: of the variables, "embedding_attention_decoder" by default.
      initial_state_attention: see `attention_decoder`.

    Returns:
      A list of outputs, and the final state.

    Raises:
      ValueError: for a projection of other shapes.
    """
    check_projection(output_projection, num_symbols)
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = best_token(table, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [tf.nn.embedding_lookup(table, each) for each in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            loop if feed_previous else None,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`embedding_rnn_seq2seq` that looks at the outputs of all steps that were read.

    Args:
      encoder_inputs: see `embedding_rnn_seq2seq`.
      decoder_inputs: see there.
      cell: an `RNNCell`.
      num_encoder_symbols: see `embedding_rnn_seq2seq`.
      num_decoder_symbols: see there.
      embedding_size: see there.
      num_heads: see `attention_decoder`.
      output_projection: see `embedding_rnn_seq2seq`.
      feed_previous: see there.
      dtype: of the first state.
      scope: of the variables, "embedding_attention_seq2seq" by default.
      initial_state_attention: see `attention_decoder`.

    Returns:
      A list of outputs, and the final state.
    """
    with tf.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as used:
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = tf.nn.static_rnn(reader, encoder_inputs, dtype=used.dtype)
        memory = tf.stack(outputs, 1)
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                memory,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                output_size,
                output_projection,
                feeds,
                initial_state_attention=initial_state_attention,
            )

        return decoded(decode, feed_previous)
