"""`tf.contrib.crf`: linear chains of tags (Lafferty and others, 2001).

With scores `s[t, k]` of tag k at step t, and transitions `a[j, k]` from tag j to tag k, the score
of tags `y` is `sum s[t, y[t]] + sum a[y[t - 1], y[t]]`.  Their probability is the exponential of
this score, over the sum of the exponentials of the scores of all sequences of tags.
"""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The scores of tags.

    Args:
      inputs: float [batch, steps, tags], the scores of each tag.
      tag_indices: integers [batch, steps].
      sequence_lengths: integers [batch]; what is behind does not count.
      transition_params: float [tags, tags], from row to column.

    Returns:
      Float [batch]; 0 for a sequence of length 0.
    """
    return crf_unary_score(tag_indices, sequence_lengths, inputs) + crf_binary_score(
        tag_indices, sequence_lengths, transition_params
    )


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The log of the sum of the exponentials of the scores of all tags that are allowed.

    Args:
      inputs: float [batch, steps, tags], the scores of each tag.
      tag_bitmap: bool [batch, steps, tags], whether a tag is allowed at a step.
      sequence_lengths: integers [batch].
      transition_params: float [tags, tags], from row to column.

    Returns:
      Float [batch]; 0 for a sequence of length 0.
    """
    inputs = tf.convert_to_tensor(inputs)
    refused = tf.fill(tf.shape(inputs), tf.constant(-np.inf, inputs.dtype))
    allowed = tf.where(tag_bitmap, inputs, refused)
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The log of the sum of the exponentials of the scores of all tags.

    Args:
      inputs: float [batch, steps, tags], the scores of each tag.
      sequence_lengths: integers [batch].
      transition_params: float [tags, tags], from row to column.

    Returns:
      Float [batch]; 0 for a sequence of length 0.
    """
    inputs = tf.convert_to_tensor(inputs)

    transitions = tf.convert_to_tensor(transition_params)
    lengths = tf.cast(sequence_lengths, tf.int32)

    def step(alphas: Any, at: Any) -> Any:
        scores, number = at
        reached = tf.reduce_logsumexp(tf.expand_dims(alphas, 2) + transitions, 1)
        return tf.where(_goes_on(number, lengths, alphas), scores + reached, alphas)

    elements = tf.transpose(inputs, [1, 0, 2]), tf.range(tf.shape(inputs)[1])
    norm = tf.reduce_logsumexp(tf.scan(step, elements, inputs[:, 0])[-1], 1)
    return tf.where(lengths <= 0, tf.zeros_like(norm), norm)


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> tuple[Any, Any]:
    """The log of the probabilities of tags.

    Args:
      inputs: float [batch, steps, tags], the scores of each tag.
      tag_indices: integers [batch, steps].
      sequence_lengths: integers [batch].
      transition_params: float [tags, tags], from row to column; by default the variable
        `transitions` of the scope.

    Returns:
      Float [batch], and the transitions.
    """
    inputs = tf.convert_to_tensor(inputs)
    if transition_params is None:
        num_tags = inputs.shape.as_list()[2]
        transition_params = tf.get_variable("transitions", [num_tags, num_tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The part of the scores of tags that comes from the steps alone.

    Args:
      tag_indices: integers [batch, steps].
      sequence_lengths: integers [batch].
      inputs: float [batch, steps, tags], the scores of each tag.

    Returns:
      Float [batch].
    """
    scores = tf.gather(tf.convert_to_tensor(inputs), tag_indices, batch_dims=2)
    return _sum_to_end(scores, sequence_lengths)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The part of the scores of tags that comes from the transitions alone.

    Args:
      tag_indices: integers [batch, steps].
      sequence_lengths: integers [batch].
      transition_params: float [tags, tags], from row to column.

    Returns:
      Float [batch].
    """
    transitions = tf.convert_to_tensor(transition_params)
    tags = tf.convert_to_tensor(tag_indices)
    places = tf.stack([tags[:, :-1], tags[:, 1:]], 2)
    scores = tf.gather_nd(transitions, places)
    return _sum_to_end(scores, tf.maximum(tf.cast(sequence_lengths, tf.int32) - 1, 0))


def _sum_to_end(scores: Any, sequence_lengths: Any) -> Any:
    """Sums scores [batch, steps] up to the ends of the sequences."""
    return tf.reduce_sum(
        scores * tf.sequence_mask(sequence_lengths, tf.shape(scores)[1], scores.dtype), 1
    )


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best tags of one sequence, in NumPy.

    Args:
      score: float array [steps, tags], the scores of each tag.
      transition_params: float array [tags, tags], from row to column.

    Returns:
      The tags, and their score.
    """
    best, backpointers = score[0], []
    for scores in score[1:]:
        reached = np.expand_dims(best, 1) + transition_params
        backpointers.append(np.argmax(reached, 0))
        best = scores + np.max(reached, 0)
    tags = [int(np.argmax(best))]
    for pointers in reversed(backpointers):
        tags.append(int(pointers[tags[-1]]))
    return tags[::-1], np.max(best)


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> tuple[Any, Any]:
    """The best tags of sequences.

    Args:
      potentials: float [batch, steps, tags], the scores of each tag.
      transition_params: float [tags, tags], from row to column.
      sequence_length: integers [batch].

    Returns:
      The tags, int32 [batch, steps], 0 behind the end; and their scores, float [batch].
    """
    potentials = tf.convert_to_tensor(potentials)
    transitions = tf.convert_to_tensor(transition_params)
    first, steps = potentials[:, 0], tf.shape(potentials)[1]
    own = tf.broadcast_to(tf.range(tf.shape(first)[1])[tf.newaxis], tf.shape(first))
    numbers, lengths = tf.range(steps), tf.cast(sequence_length, tf.int32)

    def forward(before: Any, at: Any) -> Any:
        (best, _), (scores, number) = before, at
        reached = tf.expand_dims(best, 2) + transitions
        goes_on = _goes_on(number, lengths, best)
        pointers = tf.where(goes_on, tf.argmax(reached, 1, output_type=tf.int32), own)
        return tf.where(goes_on, scores + tf.reduce_max(reached, 1), best), pointers

    elements = tf.transpose(potentials, [1, 0, 2]), numbers
    bests, pointers = tf.scan(forward, elements, (first, own))
    last = tf.argmax(bests[-1], 1, output_type=tf.int32)

    def backward(tags: Any, pointers_at: Any) -> Any:
        return tf.gather(pointers_at, tags, batch_dims=1)

    # The pointers of a step lead to the tags of the step before; those of the first to themselves.
    earlier = tf.scan(backward, pointers, last, reverse=True)[1:]
    tags = tf.transpose(tf.concat([earlier, last[tf.newaxis]], 0))
    mask = tf.sequence_mask(tf.maximum(lengths, 1), steps, tf.int32)
    return tags * mask, tf.reduce_max(bests[-1], 1)


def _goes_on(number: Any, lengths: Any, like: Any) -> Any:
    """Whether each sequence goes on to a step, and this is not its first: bool [batch, tags]."""
    goes_on = tf.logical_and(number > 0, number < lengths)
    return tf.broadcast_to(goes_on[:, tf.newaxis], tf.shape(like))
