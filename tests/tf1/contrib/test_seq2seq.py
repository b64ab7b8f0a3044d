"""`tf.contrib.seq2seq` against loops in NumPy and all sequences, one by one."""

import itertools

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells, layers
from model_deploy.tf1.contrib.written import seq2seq
from tests.tf1.contrib.sessions import run

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`tf\.nn\.rnn_cell\.\w+` is deprecated:UserWarning"),
]

_TOKENS, _END = 3, 0
# Row: token that is read; the scores of the next.
_SCORES = np.random.RandomState(0).normal(size=[_TOKENS, _TOKENS]).astype(np.float32)
_LOG = np.log(np.exp(_SCORES) / np.exp(_SCORES).sum(1, keepdims=True))


class Echo(cells.RNNCell):
    """Puts out what it reads, and counts its steps."""

    state_size, output_size = 1, _TOKENS

    def call(self, inputs, state):
        return inputs, state + 1


_LOGITS = np.random.RandomState(2).normal(size=[2, 3, 4]).astype(np.float32)
_TARGETS = np.array([[0, 1, 2], [3, 3, 0]])
_WEIGHTS = np.array([[1, 1, 0.5], [1, 0, 0]], np.float32)
_LOSSES = (
    np.log(np.exp(_LOGITS).sum(2)) - np.take_along_axis(_LOGITS, _TARGETS[..., None], 2)[..., 0]
)
_WEIGHTED = _LOSSES * _WEIGHTS


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, _WEIGHTED.sum() / 3.5),
        ({"average_across_timesteps": False}, _WEIGHTED.sum(0) / [2, 1, 0.5]),
        ({"average_across_batch": False}, _WEIGHTED.sum(1) / [2.5, 1]),
        ({"average_across_timesteps": False, "average_across_batch": False}, _WEIGHTED),
        (
            {
                "average_across_timesteps": False,
                "average_across_batch": False,
                "sum_over_timesteps": True,
                "sum_over_batch": True,
            },
            _WEIGHTED.sum() / 4,
        ),
    ],
    ids=["both", "batch", "steps", "none", "sums"],
)  # fmt: skip
def test_sequence_loss(options, expected):
    """Weighted losses over the sum of the weights, or the number that are not 0."""
    found = run(seq2seq.sequence_loss(_LOGITS, _TARGETS, _WEIGHTS, **options))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_training_is_a_dynamic_rnn():
    """With inputs that are given a decoder computes what `dynamic_rnn` does, up to the ends."""
    inputs, lengths = tf.constant(_LOGITS), [3, 1]
    cell = cells.BasicLSTMCell(5, name="cell")
    helper = seq2seq.TrainingHelper(inputs, lengths)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(2, tf.float32))
    with tf.variable_scope("same"):
        outputs, state, ends = seq2seq.dynamic_decode(decoder, impute_finished=True)
    expected, last = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)
    assert [each.op.name for each in tf.trainable_variables()] == [
        "same/decoder/cell/kernel",
        "same/decoder/cell/bias",
    ]
    gradient = tf.gradients(outputs.rnn_output, tf.trainable_variables()[0])
    found = run([outputs.rnn_output, expected, state, last, ends, gradient])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[3], rtol=1e-6)
    assert found[4].tolist() == lengths
    assert np.abs(found[5]).max() > 0


def test_greedy_decoding_takes_the_best_token():
    """Each token is the best one after that before; a sequence ends with its end token."""
    helper = seq2seq.GreedyEmbeddingHelper(_SCORES, [1, 2], _END)
    decoder = seq2seq.BasicDecoder(Echo(), helper, tf.zeros([2, 1]))
    outputs, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
    tokens, ends = run([outputs.sample_id, lengths])
    for start, found, length in zip([1, 2], tokens, ends, strict=True):
        token = start
        for step in range(length):
            token = int(np.argmax(_SCORES[token]))
            assert found[step] == token
        assert length == 4 or token == _END


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_beams_are_the_best_of_all_sequences(penalty):
    """Enough beams find the best sequences, by probability over the penalty of their length."""
    beams, steps = 9, 3
    decoder = seq2seq.BeamSearchDecoder(
        Echo(), _SCORES, [1, 2], _END, tf.zeros([2 * beams, 1]), beams, None, penalty
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=steps)
    found, logs, lengths = run([outputs.predicted_ids, state.log_probs, state.lengths])
    assert found.shape == (2, steps, beams)
    for number, start in enumerate([1, 2]):
        sequences = {each[0]: each for each in _sequences(start, steps)}
        tokens = [tuple(each) for each in found[number].T.tolist()]
        mine = [sequences[each] for each in tokens]
        assert len(set(tokens)) == beams
        # Some sequences have the same steps in another order, and so the same probability.
        scores = [_with_penalty(each, penalty) for each in sequences.values()]
        best = sorted(scores, reverse=True)[:beams]
        np.testing.assert_allclose([_with_penalty(each, penalty) for each in mine], best, rtol=1e-6)
        np.testing.assert_allclose(logs[number], [each[1] for each in mine], rtol=1e-5)
        assert lengths[number].tolist() == [each[2] for each in mine]


def _sequences(start, steps):
    """Tokens up to the end token, filled with it; log of the probability; length."""
    for tokens in itertools.product(range(_TOKENS), repeat=steps):
        end = tokens.index(_END) + 1 if _END in tokens else steps
        if set(tokens[end:]) <= {_END}:
            path = [start, *tokens[:end]]
            yield tokens, sum(_LOG[pair] for pair in itertools.pairwise(path)), end


def _with_penalty(sequence, penalty):
    tokens, log, length = sequence
    is_new = length == len(tokens) and tokens[-1] == _END  # an end token that does not count yet
    return log / ((5 + length - is_new) / 6) ** penalty


# Row: token that is read; chances of the next.  From token 1 the best beams are (0), with 0.5, and
# (2, 1, 0), with 0.45 * 0.96 * 0.5: the first is at its end two steps before the other.
_CHANCES = [[0.8, 0.1, 0.1], [0.5, 0.05, 0.45], [0.02, 0.96, 0.02]]


@pytest.mark.one_mode
def test_coverage_penalty():
    """The score of a beam that was at its end has the logarithms of the weights it has given to
    each step of the memory, up to 1, and the same beam without the penalty has not.
    """
    memory = np.random.RandomState(3).normal(0, 0.1, size=[1, 4, _TOKENS]).astype(np.float32)
    lengths, beams, weight = np.array([3]), 2, 0.1
    mechanism = seq2seq.LuongAttention(
        _TOKENS, seq2seq.tile_batch(memory, beams), seq2seq.tile_batch(lengths, beams)
    )
    cell = seq2seq.AttentionWrapper(
        Echo(), mechanism, cell_input_fn=lambda inputs, seen: inputs, output_attention=False
    )
    decoder = seq2seq.BeamSearchDecoder(
        *(cell, np.eye(_TOKENS, dtype=np.float32), [1], _END),
        *(cell.zero_state(beams, tf.float32), beams),
        output_layer=layers.Dense(
            _TOKENS, use_bias=False, kernel_initializer=tf.constant_initializer(np.log(_CHANCES))
        ),
        coverage_penalty_weight=weight,
    )
    outputs, state, _ = seq2seq.dynamic_decode(decoder, maximum_iterations=20)
    last = outputs.beam_search_decoder_output.scores
    found, (_, log_probs, _, steps, seen) = run([last, state._replace(cell_state=())])
    assert steps.tolist() == [[1, 3]]
    was_at_its_end = steps[0] < found.shape[1]
    assert seen.shape == (1, beams, 4)
    np.testing.assert_allclose(seen.sum(2), steps, rtol=1e-5)
    np.testing.assert_array_equal(seen[..., 3], 0)  # behind the end, which is no penalty
    penalty = weight * np.log(np.minimum(seen[0, :, :3], 1)).sum(1)
    expected = log_probs[0] + np.where(was_at_its_end, penalty, 0)
    np.testing.assert_allclose(found[0, -1], expected, rtol=1e-4)


@pytest.mark.one_mode
def test_gather_tree():
    """Beams are followed back by their parents; what is behind an end token is the end token."""
    tokens = [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]]]
    parents = [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]]
    found = seq2seq.gather_tree(tokens, parents, [3], 10)
    ended = seq2seq.gather_tree(tokens, parents, [3], 2)
    short = seq2seq.gather_tree(tokens, parents, [2], 10)
    found, ended, short = run([found, ended, short])
    assert found[:, 0].T.tolist() == [[2, 6, 7], [2, 5, 8], [2, 6, 9]]
    assert ended[:, 0].T.tolist() == [[2, 2, 2]] * 3
    assert short[:, 0].T.tolist() == [[1, 4, 10], [2, 5, 10], [2, 6, 10]]
    values = np.arange(9, dtype=np.float32).reshape([3, 3, 1])  # [steps, batch * beams, 1]
    ordered = run(seq2seq.gather_tree_from_array(values, parents, [[3, 3, 1]]))
    assert ordered[:, :, 0].T.tolist() == [[1, 5, 6], [1, 4, 7], [1, 0, 0]]


@pytest.mark.one_mode
@pytest.mark.parametrize("kind", ["luong", "scaled", "bahdanau", "normalized"])
def test_attention(kind):
    """Weights are the softmax of the scores of the steps up to the end; 0 behind."""
    memory = np.random.RandomState(3).normal(size=[2, 4, 3]).astype(np.float32)
    query = np.random.RandomState(4).normal(size=[2, 5]).astype(np.float32)
    if kind in ("luong", "scaled"):
        mechanism = seq2seq.LuongAttention(5, memory, [4, 2], scale=kind == "scaled")
    else:
        mechanism = seq2seq.BahdanauAttention(5, memory, [4, 2], normalize=kind == "normalized")
    weights, _ = mechanism(tf.constant(query), None)
    variables = {each.op.name: each for each in tf.trainable_variables()}
    found, values = run([weights, variables])
    keys = memory @ values["memory_layer/kernel"]
    if kind in ("luong", "scaled"):
        scores = np.einsum("bk,btk->bt", query, keys)
    else:
        scope = "bahdanau_attention"
        summed = keys + (query @ values[f"{scope}/query_layer/kernel"])[:, None]
        vector = values[f"{scope}/attention_v"]
        if kind == "normalized":  # the norm is sqrt(1 / 5) at the start, the bias 0
            vector = vector / np.sqrt((vector**2).sum()) * np.sqrt(1 / 5)
        scores = (np.tanh(summed) * vector).sum(2)
    scores[1, 2:] = -np.inf
    expected = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert len(variables) == {"luong": 1, "scaled": 2, "bahdanau": 3, "normalized": 5}[kind]


_PROBABILITIES = np.random.RandomState(6).uniform(size=[2, 5]).astype(np.float32)
_BEFORE = np.random.RandomState(7).dirichlet(np.ones(5), size=2).astype(np.float32)


def _chosen(probabilities, before):
    """The weights, by a loop over where one was and where one goes to."""
    found = np.zeros_like(before)
    for row, (p, was) in enumerate(zip(probabilities, before, strict=True)):
        for start in range(len(p)):
            left = was[start]
            for step in range(start, len(p)):
                found[row, step] += left * p[step]
                left *= 1 - p[step]
    return found


@pytest.mark.one_mode
@pytest.mark.parametrize("mode", ["recursive", "parallel", "hard"])
def test_monotonic_attention(mode):
    """Each step is chosen with its probability, or left for the next, from the last one on."""
    probabilities, before = _PROBABILITIES, _BEFORE
    if mode == "hard":
        probabilities, before = np.round(probabilities), np.eye(5, dtype=np.float32)[[1, 3]]
    found = run(seq2seq.monotonic_attention(probabilities, before, mode))
    np.testing.assert_allclose(found, _chosen(probabilities, before), rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match=r"mode must be one of recursive, .* got 'soft'"):
        seq2seq.monotonic_attention(probabilities, before, "soft")


@pytest.mark.one_mode
@pytest.mark.parametrize("mode", ["parallel", "hard"])
@pytest.mark.parametrize("kind", ["luong", "bahdanau"])
def test_mechanisms_that_never_look_back(kind, mode):
    """The sigmoid of a score and its bias is the probability, 0 behind the end of the memory."""
    memory = np.random.RandomState(3).normal(size=[2, 4, 3]).astype(np.float32)
    query = np.random.RandomState(4).normal(size=[2, 5]).astype(np.float32)
    options = {"score_bias_init": 0.5, "mode": mode}
    if kind == "luong":
        mechanism = seq2seq.LuongMonotonicAttention(5, memory, [4, 2], scale=True, **options)
    else:
        mechanism = seq2seq.BahdanauMonotonicAttention(5, memory, [4, 2], True, **options)
    start = mechanism.initial_state(2, tf.float32)
    weights, _ = mechanism(tf.constant(query), start)
    variables = {each.op.name: each for each in tf.trainable_variables()}
    found, values = run([weights, variables])
    keys = memory @ values["memory_layer/kernel"]
    scope = f"{kind}_monotonic_attention"
    if kind == "luong":
        scores = np.einsum("bk,btk->bt", query, keys)
    else:
        summed = keys + (query @ values[f"{scope}/query_layer/kernel"])[:, None]
        vector = values[f"{scope}/attention_v"]
        scores = (np.tanh(summed) * vector / np.sqrt(5 * (vector**2).sum())).sum(2)
    assert values[f"{scope}/attention_score_bias"] == 0.5
    scores = scores + 0.5
    chosen = (scores > 0).astype(np.float32) if mode == "hard" else 1 / (1 + np.exp(-scores))
    chosen[1, 2:] = 0
    first = np.eye(4, dtype=np.float32)[[0, 0]]
    np.testing.assert_allclose(found, _chosen(chosen, first), rtol=1e-4, atol=1e-6)


@pytest.mark.one_mode
def test_noise_before_the_sigmoid():
    """Noise of a seed moves scores by as many deviations as it says."""
    memory, query = tf.zeros([1, 200, 3]), tf.zeros([1, 3])
    mechanism = seq2seq.LuongMonotonicAttention(
        3, memory, sigmoid_noise=2.0, sigmoid_noise_seed=1, mode="hard"
    )
    chosen = run(mechanism(query, mechanism.initial_state(1, tf.float32))[0])
    assert chosen.sum() == 1  # by noise alone one of the first steps
    assert chosen[0, :12].sum() == 1


def test_attention_wrapper():
    """The memory by its weights, and the output of the cell, go through the layer."""
    memory = np.random.RandomState(3).normal(size=[2, 4, 3]).astype(np.float32)
    mechanism = seq2seq.LuongAttention(_TOKENS, memory)
    wrapper = seq2seq.AttentionWrapper(
        Echo(), mechanism, 6, alignment_history=True, cell_input_fn=lambda inputs, seen: inputs
    )
    state = wrapper.zero_state(2, tf.float32)
    assert state.clone(time=tf.constant(3)).attention is state.attention
    inputs = tf.constant(_SCORES[:2])
    output, state = wrapper(inputs, state)
    names = [each.op.name for each in tf.trainable_variables()]
    assert names == ["memory_layer/kernel", "attention_wrapper/attention_layer/kernel"]
    found, history, weights, kernel = run(
        [output, state.alignment_history.stack(), state.alignments, tf.trainable_variables()[1]]
    )
    seen = np.einsum("bt,btd->bd", weights, memory)
    expected = np.concatenate([_SCORES[:2], seen], 1) @ kernel
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_array_equal(history, weights[None])
    assert wrapper.output_size == 6


def test_sampling_helpers():
    """Sure probabilities choose: always or never an input of the decoder's own."""
    inputs = tf.constant(_LOGITS[:, :, :_TOKENS])

    def decode(helper, state=None):
        decoder = seq2seq.BasicDecoder(Echo(), helper, tf.zeros([2, 1]))
        return seq2seq.dynamic_decode(decoder, maximum_iterations=3)[0]

    never = decode(seq2seq.ScheduledOutputTrainingHelper(inputs, [3, 3], 0.0))
    always = decode(
        seq2seq.ScheduledOutputTrainingHelper(inputs, [3, 3], 1.0, next_inputs_fn=lambda x: x + 1)
    )
    tokens = decode(seq2seq.ScheduledEmbeddingTrainingHelper(inputs, [3, 3], _SCORES, 0.0))
    sampled = decode(seq2seq.SampleEmbeddingHelper(100 * _SCORES, [1, 1], -1, seed=1))
    own = decode(
        seq2seq.InferenceHelper(
            lambda outputs: outputs, [_TOKENS], tf.float32, tf.ones([2, _TOKENS]),
            lambda outputs: tf.zeros([2], tf.bool), lambda outputs: 2 * outputs,
        )
    )  # fmt: skip
    custom = decode(
        seq2seq.CustomHelper(
            lambda: (tf.zeros([2], tf.bool), tf.zeros([2, _TOKENS])),
            lambda time, outputs, state: tf.fill([2], time),
            lambda time, outputs, state, sample_ids: (sample_ids > 0, outputs + 1, state),
        )
    )
    found = run([never, always, tokens, sampled, own, custom])
    np.testing.assert_array_equal(found[0].rnn_output, _LOGITS[:, :, :_TOKENS])
    first = _LOGITS[:, :1, :_TOKENS]
    np.testing.assert_allclose(found[1].rnn_output, first + np.arange(3)[:, None], rtol=1e-6)
    assert set(found[2].sample_id.ravel()) == {-1}
    best = [np.argmax(_SCORES[1])]  # 100 times the scores leave no doubt
    for _ in range(2):
        best.append(np.argmax(_SCORES[best[-1]]))
    assert found[3].sample_id.tolist() == [best] * 2
    assert found[4].rnn_output[0, :, 0].tolist() == [1, 2, 4]
    assert found[5].sample_id.tolist() == [[0, 1]] * 2


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: seq2seq.TrainingHelper(tf.zeros([2, 3, 1]), 3), "one dimension"),
        (lambda: seq2seq.GreedyEmbeddingHelper(_SCORES, 1, 0), r"start_tokens must be \[batch\]"),
        (lambda: seq2seq.GreedyEmbeddingHelper(_SCORES, [1], [0]), "end_token must be a number"),
        (lambda: seq2seq.dynamic_decode("decoder"), "must be a Decoder, got 'decoder'"),
        (
            lambda: seq2seq.BeamSearchDecoder(
                None, _SCORES, [1], 0, None, 2, coverage_penalty_weight=0.5
            ),
            "coverage_penalty_weight must be 0 for a cell that is no AttentionWrapper .* got 0.5",
        ),
        (
            lambda: seq2seq.LuongAttention(3, tf.zeros([1, 2, 3]))(tf.zeros([1, 2]), None),
            "num_units must be the depth of the queries, 2, got 3",
        ),
        (lambda: seq2seq.sequence_loss(_LOGITS, [1], _WEIGHTS), "targets must have 2 dimensions"),
        (
            lambda: seq2seq.sequence_loss(_LOGITS, _TARGETS, _WEIGHTS, sum_over_batch=True),
            "must not be with an average",
        ),
    ],
)
def test_refusals(make, message):
    """What cannot be is told with the field and the value."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.one_mode
def test_layers_above_a_decoder():
    """A `tf.layers.Dense` above the cell gives the outputs their size; tokens are repeated."""
    layer = layers.Dense(7)
    helper = seq2seq.TrainingHelper(tf.constant(_LOGITS[:, :, :_TOKENS]), [3, 3])
    decoder = seq2seq.BasicDecoder(Echo(), helper, tf.zeros([2, 1]), layer)
    assert seq2seq.dynamic_decode(decoder)[0].rnn_output.shape.as_list()[-1] == 7
    tiled, hard = run(
        [seq2seq.tile_batch(tf.constant([[1], [2]]), 2), seq2seq.hardmax([[1.0, 3.0, 2.0]])]
    )
    assert (tiled.tolist(), hard.tolist()) == ([[1], [1], [2], [2]], [[0, 1, 0]])
