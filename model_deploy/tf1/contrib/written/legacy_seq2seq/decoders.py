"""A cell reads a list of steps, and writes another."""

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


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A cell over a list of inputs.

    Args:
      decoder_inputs: float [batch, depth], one for each step.
      initial_state: of the cell.
      cell: an `RNNCell`.
      loop_function: makes the next input of the last output and the step's number, and all inputs
        but the first are not read; or None.
      scope: of the variables, "rnn_decoder" by default.

    Returns:
      A list of outputs, and the final state.
    """
    with tf.variable_scope(scope or "rnn_decoder") as used:
        outputs: list[Any] = []
        state = initial_state
        for step, given in enumerate(decoder_inputs):
            inputs = given
            if loop_function is not None and outputs:
                with tf.variable_scope("loop_function", reuse=True):
                    inputs = loop_function(outputs[-1], step)
            if step:
                used.reuse_variables()
            output, state = cell(inputs, state)
            outputs.append(output)
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A cell reads a sequence; a copy of it with variables of its own writes another.

    Args:
      encoder_inputs: float [batch, depth], one for each step.
      decoder_inputs: the same for what is written.
      cell: an `RNNCell`.
      dtype: of the first state.
      scope: of the variables, "basic_rnn_seq2seq" by default.

    Returns:
      A list of outputs, and the final state.
    """
    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        reader = copy.deepcopy(cell)
        _, state = tf.nn.static_rnn(reader, encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`basic_rnn_seq2seq` with the same variables for reading and writing.

    Args:
      encoder_inputs: float [batch, depth], one for each step.
      decoder_inputs: the same for what is written.
      cell: an `RNNCell`.
      loop_function: see `rnn_decoder`.
      dtype: of the first state.
      scope: of the variables, "combined_tied_rnn_seq2seq" by default.

    Returns:
      A list of outputs, and the final state.
    """
    with tf.variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        tf.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, name)


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`rnn_decoder` of tokens, by a table `embedding`.

    Args:
      decoder_inputs: integers [batch], one for each step.
      initial_state: of the cell.
      cell: an `RNNCell`.
      num_symbols: number of tokens.
      embedding_size: of an input.
      output_projection: weights [outputs, tokens] and biases [tokens] by which `feed_previous`
        finds the best token; by default outputs are scores of tokens already.
      feed_previous: whether the best token is read at the next step, and of the inputs only the
        first.
      update_embedding_for_previous: whether gradients flow into the table from such tokens.
      scope: of the variables, "embedding_rnn_decoder" by default.

    Returns:
      A list of outputs, and the final state.

    Raises:
      ValueError: for a projection of other shapes.
    """
    with tf.variable_scope(scope or "embedding_rnn_decoder"):
        check_projection(output_projection, num_symbols)
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = best_token(table, output_projection, update_embedding_for_previous)
        inputs = [tf.nn.embedding_lookup(table, each) for each in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop if feed_previous else None)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`basic_rnn_seq2seq` of tokens.

    Args:
      encoder_inputs: integers [batch], one for each step.
      decoder_inputs: the same for what is written.
      cell: an `RNNCell`.
      num_encoder_symbols: number of tokens that are read.
      num_decoder_symbols: number of tokens that are written.
      embedding_size: of an input.
      output_projection: see `embedding_rnn_decoder`; by default a layer makes scores of outputs.
      feed_previous: see there; a bool, or a bool tensor.
      dtype: of the first state.
      scope: of the variables, "embedding_rnn_seq2seq" by default.

    Returns:
      A list of outputs, and the final state.
    """
    with tf.variable_scope(scope or "embedding_rnn_seq2seq") as used:
        reader = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = tf.nn.static_rnn(reader, encoder_inputs, dtype=dtype or used.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feeds: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs,
                state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection,
                feeds,
            )

        return decoded(decode, feed_previous)
