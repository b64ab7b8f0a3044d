"""`tf.contrib.legacy_seq2seq`: sequences as lists of steps, made of `tf.nn.static_rnn`."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
import copy
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written.rnn import EmbeddingWrapper, OutputProjectionWrapper, linear


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
        state, outputs = initial_state, []
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
        _check_projection(output_projection, num_symbols)
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = _best_token(table, output_projection, update_embedding_for_previous)
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

        return _decoded(decode, feed_previous)


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
        state, outputs = initial_state, []
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
    _check_projection(output_projection, num_symbols)
    with tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = _best_token(table, output_projection, update_embedding_for_previous)
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

        return _decoded(decode, feed_previous)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Weighted cross entropies of sequences, one for each.

    Args:
      logits: float [batch, classes], one for each step.
      targets: integers [batch], one for each step.
      weights: float [batch], one for each step.
      average_across_timesteps: whether the sum over the steps is divided by that of the weights.
      softmax_loss_function: gets `labels` and `logits` of a step and returns losses [batch]; by
        default the sparse softmax cross entropy.
      name: of the ops.

    Returns:
      Float [batch].

    Raises:
      ValueError: for lists that are not as long.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            "logits, targets and weights must be as many, got "
            f"{len(logits)}, {len(targets)}, {len(weights)}"
        )
    loss_of = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = [
            loss_of(labels=tf.reshape(target, [-1]), logits=logit) * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        total = tf.add_n(losses)
        # As in TensorFlow 1: a sequence without weights has no loss.
        return total / (tf.add_n(list(weights)) + 1e-12) if average_across_timesteps else total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The sum of `sequence_loss_by_example`.

    Args:
      logits: see there.
      targets: see there.
      weights: see there.
      average_across_timesteps: see there.
      average_across_batch: whether the sum is divided by the number of sequences.
      softmax_loss_function: see there.
      name: of the ops.

    Returns:
      A number, float.
    """
    with tf.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        return tf.reduce_mean(losses) if average_across_batch else tf.reduce_sum(losses)


def model_with_buckets(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]],
    seq2seq: Callable[[Any, Any], Any],
    softmax_loss_function: Callable[..., Any] | None = None,
    per_example_loss: bool = False,
    name: str | None = None,
) -> tuple[list[Any], list[Any]]:
    """The same model for several lengths.

    Args:
      encoder_inputs: for `seq2seq`, one for each step of the longest bucket.
      decoder_inputs: for `seq2seq`.
      targets: integers [batch], one for each step.
      weights: float [batch], one for each step.
      buckets: pairs of the number of steps that are read and that are written.
      seq2seq: from the inputs of a bucket to outputs and a state.
      softmax_loss_function: see `sequence_loss_by_example`.
      per_example_loss: whether a loss is [batch], not a number.
      name: of the ops.

    Returns:
      The outputs of each bucket, and its loss.

    Raises:
      ValueError: for inputs, targets or weights that are fewer than the longest bucket has.
    """
    longest = [max(sizes) for sizes in zip(*buckets, strict=True)]
    given = [len(encoder_inputs), min(map(len, (targets, weights)))]
    if given[0] < longest[0] or given[1] < longest[1]:
        raise ValueError(f"steps must be at least {longest} for the longest bucket, got {given}")
    outputs, losses = [], []
    loss_of = sequence_loss_by_example if per_example_loss else sequence_loss
    everything = [*encoder_inputs, *decoder_inputs, *targets, *weights]
    with tf.name_scope(name, "model_with_buckets", everything):
        for number, (read, written) in enumerate(buckets):
            with tf.variable_scope(tf.get_variable_scope(), reuse=True if number else None):
                found, _ = seq2seq(encoder_inputs[:read], decoder_inputs[:written])
            outputs.append(found)
            losses.append(
                loss_of(
                    found,
                    targets[:written],
                    weights[:written],
                    softmax_loss_function=softmax_loss_function,
                )
            )
    return outputs, losses


def _best_token(table: Any, projection: Any, learns: bool) -> Callable[[Any, int], Any]:
    """From the outputs of a step to the embedding of the best token."""

    def loop(output: Any, step: int) -> Any:
        del step
        scores = output if projection is None else tf.matmul(output, projection[0]) + projection[1]
        embedded = tf.nn.embedding_lookup(table, tf.argmax(scores, 1))
        return embedded if learns else tf.stop_gradient(embedded)

    return loop


def _check_projection(projection: Any, num_symbols: int) -> None:
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


def _decoded(decode: Callable[[bool], Any], feed_previous: Any) -> Any:
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
