"""`tf.contrib.crf` against all sequences of tags, one by one."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.written import crf

_STEPS, _TAGS = 4, 3
_LENGTHS = [4, 2, 1]
_random = np.random.RandomState(1)
_SCORES = _random.normal(size=[3, _STEPS, _TAGS])
_TRANSITIONS = _random.normal(size=[_TAGS, _TAGS])
_PATHS = [list(itertools.product(range(_TAGS), repeat=length)) for length in _LENGTHS]


def _score(number, tags):
    steps = sum(_SCORES[number, step, tag] for step, tag in enumerate(tags))
    return steps + sum(_TRANSITIONS[pair] for pair in itertools.pairwise(tags))


def _padded(tags):
    return [*tags, *[0] * (_STEPS - len(tags))]


_ALL = [{path: _score(number, path) for path in paths} for number, paths in enumerate(_PATHS)]
_NORMS = [np.log(sum(np.exp(list(scores.values())))) for scores in _ALL]
_BEST = [max(scores, key=scores.get) for scores in _ALL]


@pytest.mark.parametrize("steps", [_STEPS, None], ids=["known", "unknown"])
def test_likelihood_and_norm(steps):
    """The score of tags is the sum of its parts, and the norm sums over all tags."""
    scores = tf.placeholder_with_default(_SCORES, [None, steps, _TAGS])
    tags = [[0, 2, 1, 1], [2, 0, 0, 0], [1, 0, 0, 0]]
    likelihood, transitions = crf.crf_log_likelihood(scores, tags, _LENGTHS, _TRANSITIONS)
    own = [_score(n, tags[n][:length]) for n, length in enumerate(_LENGTHS)]
    with tf.Session() as session:
        found, norm = session.run([likelihood, crf.crf_log_norm(scores, _LENGTHS, transitions)])
    np.testing.assert_allclose(norm, _NORMS)
    np.testing.assert_allclose(found, np.subtract(own, _NORMS))


def test_decoding():
    """The best tags are those of the greatest score; behind the end they are 0."""
    tags, best = crf.crf_decode(_SCORES, tf.constant(_TRANSITIONS), tf.constant(_LENGTHS))
    with tf.Session() as session:
        found, scores = session.run([tags, best])
    assert found.tolist() == [_padded(path) for path in _BEST]
    np.testing.assert_allclose(scores, [max(each.values()) for each in _ALL])
    path, score = crf.viterbi_decode(_SCORES[0], _TRANSITIONS)
    assert (tuple(path), score) == (_BEST[0], pytest.approx(_ALL[0][_BEST[0]]))


def test_several_tags_are_allowed():
    """The score of a set of tags is the log of the sum over all sequences made of them."""
    allowed = np.ones([3, _STEPS, _TAGS], bool)
    allowed[:, 0, 1] = allowed[0, 2, 0] = False
    found = crf.crf_multitag_sequence_score(_SCORES, allowed, _LENGTHS, _TRANSITIONS)
    expected = [
        np.log(
            sum(
                np.exp(score)
                for path, score in scores.items()
                if all(allowed[number, step, tag] for step, tag in enumerate(path))
            )
        )
        for number, scores in enumerate(_ALL)
    ]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), expected)


def test_transitions_are_a_variable_that_learns():
    """Without transitions the variable `transitions` is made, and gradients reach it."""
    likelihood, transitions = crf.crf_log_likelihood(
        tf.constant(_SCORES, tf.float32), np.zeros([3, _STEPS], np.int32), _LENGTHS
    )
    [gradient] = tf.gradients(likelihood, transitions)
    assert transitions.op.name == "transitions"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        # Each transition that the tags make counts 1, less its probability: in all nothing.
        found = session.run(gradient)
    assert abs(found.sum()) < 1e-4
    assert found[0, 0] > 0


def test_empty_sequences():
    """A sequence of length 0 has score and norm 0."""
    found = (
        crf.crf_log_norm(_SCORES, [0, 0, 0], _TRANSITIONS),
        crf.crf_sequence_score(_SCORES, np.zeros([3, _STEPS], int), [0, 0, 0], _TRANSITIONS),
    )
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(found), np.zeros([2, 3]))
