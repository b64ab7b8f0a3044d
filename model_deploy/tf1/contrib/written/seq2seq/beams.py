"""`BeamSearchDecoder`: the best of many sequences, step by step."""

# ruff: noqa: PLR0917 - the order of arguments is contrib's
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written.seq2seq.decoding import Decoder
from model_deploy.tf1.contrib.written.seq2seq.helpers import as_embedding, checked_tokens


class BeamSearchDecoderState(NamedTuple):
    """The state of a `BeamSearchDecoder`.

    Attributes:
      cell_state: that of the cell, with tensors [batch, beams, ...].
      log_probs: of the beams, float [batch, beams].
      finished: which beams are at their end, bool [batch, beams].
      lengths: int64 [batch, beams], the end token included.
      accumulated_attention_probs: the sums of the weights of all steps so far, float
        [batch, beams, steps of the memory]; () where no coverage is penalized.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """A step of the beams: their scores, tokens, and which beams of the step before they follow."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The tokens of the best beams, best first, int32 [batch, steps, beams]; and all steps."""

    predicted_ids: Any
    beam_search_decoder_output: BeamSearchDecoderOutput


class BeamSearchDecoder(Decoder):
    """Follows several beams of each sequence, those with the best scores.

    The score of a beam is the log of its probability, over `((5 + length) / 6) **
    length_penalty_weight` (https://arxiv.org/abs/1609.08144, equation 14).  As in TensorFlow 1, the
    end token does not count in the length at the step that takes it, and counts from the next on.
    To the score of a beam at its end comes the coverage penalty of the same equation.

    Args:
      cell: an `RNNCell`; the memory of an `AttentionWrapper` goes through `tile_batch`.
      embedding: a function from tokens to inputs, or float [tokens, depth].
      start_tokens: int32 [batch].
      end_token: int32, the token after which a beam is at its end.
      initial_state: of the cell, of batch * beams sequences, see `tile_batch`.
      beam_width: the number of beams.
      output_layer: a layer that outputs go through, or None.
      length_penalty_weight: 0 compares probabilities as they are.
      coverage_penalty_weight: how much steps of the memory count that a beam has looked at too
        little, all its weights for them together less than 1; needs an `AttentionWrapper`.
      reorder_tensor_arrays: whether a `TensorArray` in the final state, such as the history of an
        `AttentionWrapper`, comes as a tensor in the order of the beams.

    Raises:
      ValueError: for tokens of other dimensions, or a `coverage_penalty_weight` where the state
        is not that of an `AttentionWrapper` with one mechanism.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        weights = getattr(initial_state, "alignments", None)
        if coverage_penalty_weight and (weights is None or isinstance(weights, list | tuple)):
            raise ValueError(
                "coverage_penalty_weight must be 0 for a cell that is no AttentionWrapper with one "
                f"mechanism, got {coverage_penalty_weight}"
            )
        self._coverage_weight = coverage_penalty_weight
        self._cell = cell
        self._output_layer = output_layer
        self._embed = as_embedding(embedding)
        start_tokens, self._end_token = checked_tokens(start_tokens, end_token)
        self._beams = beam_width
        self._weight = length_penalty_weight
        self._reorder = reorder_tensor_arrays
        self._batch_size = tf.size(start_tokens)
        self._initial_state = tf.nest.map_structure(self._split, initial_state)
        tokens = tf.tile(start_tokens[:, tf.newaxis], [1, beam_width])
        self._start_inputs = self._embed(tokens)
        self._dtype = next(
            each.dtype for each in tf.nest.flatten(initial_state) if each.dtype.is_floating
        )

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """Yes: beams change their places, also those that are at their end."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        size = tf.TensorShape([self._beams])
        return BeamSearchDecoderOutput(size, size, size)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """The first of the beams is alive; the others would say the same."""
        del name
        first = tf.one_hot(tf.zeros([self._batch_size], tf.int32), self._beams, True, False)
        finished = tf.logical_not(first)
        alive = tf.zeros(tf.shape(first), self._dtype)
        state = BeamSearchDecoderState(
            cell_state=self._initial_state,
            log_probs=tf.where(first, alive, tf.fill(tf.shape(first), alive.dtype.min)),
            finished=finished,
            lengths=tf.zeros(tf.shape(first), tf.int64),
            accumulated_attention_probs=(
                tf.zeros_like(self._initial_state.alignments) if self._coverage_weight else ()
            ),
        )
        return finished, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """One step of the cell for all beams, and the choice of the next ones."""
        with tf.name_scope(name, "BeamSearchDecoderStep", [time]):
            outputs, cell_state = self._cell(
                self._merge(inputs), tf.nest.map_structure(self._merge, state.cell_state)
            )
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            cell_state = tf.nest.map_structure(self._split, cell_state)
            chosen, next_state = self._choose(self._split(outputs), cell_state, state)
            next_inputs = tf.cond(
                tf.reduce_all(next_state.finished),
                lambda: self._start_inputs,  # which nobody reads
                lambda: self._embed(chosen.predicted_ids),
            )
        return chosen, next_state, next_inputs, next_state.finished

    def _choose(
        self, logits: Any, cell_state: Any, state: BeamSearchDecoderState
    ) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:
        """The best `beam_width` of all beams with all tokens, [batch, beams * tokens]."""
        tokens = logits.shape.as_list()[-1] or tf.shape(logits)[-1]
        ended = tf.broadcast_to(state.finished[:, :, tf.newaxis], tf.shape(logits))
        # A beam at its end goes on with its end token, and keeps its probability.
        stays = tf.one_hot(self._end_token, tokens, 0.0, self._dtype.min, dtype=self._dtype)
        steps = tf.where(ended, tf.broadcast_to(stays, tf.shape(logits)), tf.nn.log_softmax(logits))
        total = tf.maximum(state.log_probs[:, :, tf.newaxis] + steps, self._dtype.min)
        longer = tf.one_hot(self._end_token, tokens, 0, 1, dtype=tf.int64)
        lengths = state.lengths[:, :, tf.newaxis] + longer * tf.cast(~ended, tf.int64)
        graded, looked_at = total / self._penalty(lengths), state.accumulated_attention_probs
        if self._coverage_weight:
            looked_at = _looked_at(cell_state, state)
            graded += self._coverage_penalty(looked_at, state.finished)
        flat = tf.reshape(graded, [self._batch_size, -1])
        scores, places = tf.math.top_k(flat, self._beams)
        places = _with_shape(places, state.log_probs.shape)
        parents, words = tf.cast(places // tokens, tf.int32), tf.cast(places % tokens, tf.int32)

        def of_parents(values: Any) -> Any:
            return _with_shape(tf.gather(values, parents, batch_dims=1), values.shape)

        was_finished = of_parents(state.finished)
        next_state = BeamSearchDecoderState(
            cell_state=tf.nest.map_structure(
                lambda each: of_parents(each) if _has_beams(each) else each, cell_state
            ),
            log_probs=_with_shape(
                tf.gather(tf.reshape(total, [self._batch_size, -1]), places, batch_dims=1),
                state.log_probs.shape,
            ),
            finished=tf.logical_or(was_finished, tf.equal(words, self._end_token)),
            lengths=of_parents(state.lengths) + tf.cast(~was_finished, tf.int64),
            accumulated_attention_probs=tf.nest.map_structure(of_parents, looked_at),
        )
        return BeamSearchDecoderOutput(scores, words, parents), next_state

    def _penalty(self, lengths: Any) -> Any:
        return ((5 + tf.cast(lengths, self._dtype)) / 6) ** self._weight

    def _coverage_penalty(self, looked_at: Any, finished: Any) -> Any:
        """What is added to the scores, [batch, beams, 1]: at most 0, and 0 before a beam's end.

        A step without any weight, such as one behind the end of the memory, counts as seen.
        """
        seen = tf.where(looked_at > 0, tf.minimum(looked_at, 1.0), tf.ones_like(looked_at))
        penalty = tf.reduce_sum(tf.log(seen), 2) * tf.cast(finished, self._dtype)
        return self._coverage_weight * penalty[:, :, tf.newaxis]

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """The tokens of each beam from its last step back to its first."""
        lengths = tf.cast(tf.reduce_max(final_state.lengths, 1), tf.int32)
        tokens = gather_tree(outputs.predicted_ids, outputs.parent_ids, lengths, self._end_token)
        if self._reorder:

            def ordered_by_beam(value: Any) -> Any:
                if not isinstance(value, tf.TensorArray):
                    return value
                return gather_tree_from_array(value, outputs.parent_ids, sequence_lengths)

            ordered = tf.nest.map_structure(ordered_by_beam, final_state.cell_state)
            final_state = final_state._replace(cell_state=ordered)
        return FinalBeamSearchDecoderOutput(tokens, outputs), final_state

    def _split(self, value: Any) -> Any:
        """A tensor [batch * beams, ...] as [batch, beams, ...]; numbers and arrays as they are."""
        if isinstance(value, tf.TensorArray) or value.shape.ndims == 0:
            return value
        shape = tf.concat([[self._batch_size, self._beams], tf.shape(value)[1:]], 0)
        batch = tf.get_static_value(self._batch_size)
        static = tf.TensorShape([batch, self._beams]).concatenate(value.shape[1:])
        return _with_shape(tf.reshape(value, shape), static)

    def _merge(self, value: Any) -> Any:
        """A tensor [batch, beams, ...] as [batch * beams, ...]; others as they are."""
        if not _has_beams(value):
            return value
        shape = tf.concat([[self._batch_size * self._beams], tf.shape(value)[2:]], 0)
        batch = tf.get_static_value(self._batch_size)
        total = None if batch is None else int(batch) * self._beams
        static = tf.TensorShape([total]).concatenate(value.shape[2:])
        return _with_shape(tf.reshape(value, shape), static)


def _looked_at(cell_state: Any, state: BeamSearchDecoderState) -> Any:
    """The sums of weights after a step, of beams at their end as they were."""
    before = state.accumulated_attention_probs
    ended = tf.broadcast_to(state.finished[:, :, tf.newaxis], tf.shape(before))
    return _with_shape(tf.where(ended, before, before + cell_state.alignments), before.shape)


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each sequence several times, one after the other: a, a, b, b.

    Args:
      t: a tensor [batch, ...], or a structure of such.
      multiplier: how often; the number of beams.
      name: of the ops.

    Returns:
      Tensors [batch * multiplier, ...].
    """
    with tf.name_scope(name, "tile_batch", tf.nest.flatten(t)):
        return tf.nest.map_structure(lambda each: _tiled(tf.convert_to_tensor(each), multiplier), t)


def _tiled(tensor: Any, multiplier: int) -> Any:
    batch = tensor.shape.as_list()[0]
    total = None if batch is None else batch * multiplier
    return _with_shape(
        tf.repeat(tensor, multiplier, axis=0), tf.TensorShape([total]).concatenate(tensor.shape[1:])
    )


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Any:
    """The tokens of beams, followed from the last step of each back to its first.

    Args:
      step_ids: integers [steps, batch, beams], the token that a beam took at a step.
      parent_ids: integers of the same shape, the beam of the step before that it follows.
      max_sequence_lengths: integers [batch], of the longest beam.
      end_token: an integer, which fills what is behind the end of a beam.
      name: of the ops.

    Returns:
      Integers [steps, batch, beams].
    """
    with tf.name_scope(name, "gather_tree", [step_ids]):
        step_ids = tf.convert_to_tensor(step_ids)
        end_token = tf.cast(end_token, step_ids.dtype)
        own = tf.broadcast_to(tf.range(tf.shape(step_ids)[2]), tf.shape(step_ids)[1:])
        lengths = tf.cast(max_sequence_lengths, tf.int32)[:, tf.newaxis]

        def back(following: Any, at: Any) -> Any:
            (_, beams), (tokens, parents, number) = following, at
            is_in = tf.broadcast_to(number < lengths, tf.shape(beams))
            found = tf.gather(tokens, beams, batch_dims=1)
            earlier = tf.gather(parents, beams, batch_dims=1)
            fill = tf.fill(tf.shape(beams), end_token)
            return tf.where(is_in, found, fill), tf.where(is_in, earlier, beams)

        numbers = tf.range(tf.shape(step_ids)[0])
        elements = step_ids, tf.cast(parent_ids, tf.int32), numbers
        tokens, _ = tf.scan(back, elements, (step_ids[0], own), reverse=True)
        ended = tf.cumsum(tf.cast(tf.equal(tokens, end_token), tf.int32), exclusive=True) > 0
        filled = tf.where(ended, tf.fill(tf.shape(tokens), end_token), tokens)
        return _with_shape(filled, step_ids.shape)


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Any:
    """Values of beams, in the order of the tokens that `gather_tree` gives.

    Args:
      t: a tensor [steps, batch * beams, ...] or [steps, batch, beams, ...], or a `TensorArray`.
      parent_ids: integers [steps, batch, beams], see `gather_tree`.
      sequence_length: integers [batch, beams], the lengths of the beams.

    Returns:
      A tensor of the shape of `t`; 0 behind the ends.
    """
    values = t.stack() if isinstance(t, tf.TensorArray) else tf.convert_to_tensor(t)
    parent_ids = tf.cast(parent_ids, tf.int32)
    shape = tf.shape(parent_ids)
    beams = tf.broadcast_to(tf.range(shape[2]), shape)
    lengths = tf.cast(sequence_length, tf.int32)
    path = gather_tree(beams, parent_ids, tf.reduce_max(lengths, 1), shape[2])
    is_in = tf.transpose(tf.sequence_mask(lengths, shape[0]), [2, 0, 1])
    flat = tf.reshape(values, tf.concat([shape, [-1]], 0))
    path = tf.where(is_in, path, beams)
    gathered = tf.gather(flat, path, batch_dims=2)
    masked = gathered * tf.cast(is_in, values.dtype)[..., tf.newaxis]
    return _with_shape(tf.reshape(masked, tf.shape(values)), values.shape)


def _has_beams(value: Any) -> bool:
    return not isinstance(value, tf.TensorArray) and value.shape.ndims >= 2


def _with_shape(tensor: Any, shape: Any) -> Any:
    tensor.set_shape(shape)
    return tensor
