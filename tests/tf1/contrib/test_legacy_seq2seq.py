"""`tf.contrib.legacy_seq2seq`: lists of steps, by TensorFlow 1's names of variables."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written import legacy_seq2seq
from tests.nets import graphs
from tests.tf1.contrib.sessions import run

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`tf\.nn\.rnn_cell\.\w+` is deprecated:UserWarning"),
]

_STEPS = np.random.RandomState(0).normal(size=[3, 2, 4]).astype(np.float32)
_TOKENS = [[0, 1], [2, 0], [1, 2]]


def _run(values):
    return run([values, {each.op.name: each for each in tf.trainable_variables()}])


def _cell():
    return cells.BasicRNNCell(4)


def _step(inputs, state, values, scope):
    both = np.concatenate([inputs, state], 1)
    return np.tanh(both @ values[f"{scope}/kernel"] + values[f"{scope}/bias"])


@pytest.mark.one_mode
@pytest.mark.parametrize("tied", [False, True])
def test_reading_and_writing(tied):
    """The state after what was read is the one before what is written, by one cell or by two."""
    function = legacy_seq2seq.tied_rnn_seq2seq if tied else legacy_seq2seq.basic_rnn_seq2seq
    inputs = [tf.constant(each) for each in _STEPS]
    (outputs, last), values = _run(function(inputs, inputs[:2], _cell()))
    if tied:
        reads = writes = "combined_tied_rnn_seq2seq/tied_rnn_seq2seq/basic_rnn_cell"
    else:
        reads = "basic_rnn_seq2seq/rnn/basic_rnn_cell"
        writes = "basic_rnn_seq2seq/rnn_decoder/basic_rnn_cell"
    assert {name.rpartition("/")[0] for name in values} == {reads, writes}
    state = np.zeros([2, 4])
    for each in _STEPS:
        state = _step(each, state, values, reads)
    for number in range(2):
        state = _step(_STEPS[number], state, values, writes)
        np.testing.assert_allclose(outputs[number], state, rtol=1e-4)
    np.testing.assert_allclose(last, state, rtol=1e-4)


def test_loop_function():
    """From the second step on, what the function makes of the last output is read."""
    inputs = [tf.constant(each) for each in _STEPS]
    outputs, _ = legacy_seq2seq.rnn_decoder(
        inputs, tf.zeros([2, 4]), _cell(), lambda output, step: output * step
    )
    found, values = _run(outputs)
    state = _step(_STEPS[0], np.zeros([2, 4]), values, "rnn_decoder/basic_rnn_cell")
    for number in (1, 2):
        state = _step(number * found[number - 1], state, values, "rnn_decoder/basic_rnn_cell")
        np.testing.assert_allclose(found[number], state, rtol=1e-4)


_OF_ATTENTION = (  # noqa: SIM905 - as a list it is longer
    "AttnW_0 AttnV_0 kernel bias output_projection_wrapper/basic_rnn_cell/kernel "
    "output_projection_wrapper/basic_rnn_cell/bias output_projection_wrapper/kernel "
    "output_projection_wrapper/bias Attention_0/kernel Attention_0/bias "
    "AttnOutputProjection/kernel AttnOutputProjection/bias"
).split()
_NAMES = {
    "embedding_rnn_seq2seq": (
        "rnn/embedding_wrapper/embedding rnn/embedding_wrapper/basic_rnn_cell/kernel "
        "rnn/embedding_wrapper/basic_rnn_cell/bias embedding_rnn_decoder/embedding "
        "embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/basic_rnn_cell/kernel "
        "embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/basic_rnn_cell/bias "
        "embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/kernel "
        "embedding_rnn_decoder/rnn_decoder/output_projection_wrapper/bias"
    ),
    "embedding_attention_seq2seq": (
        "rnn/embedding_wrapper/embedding rnn/embedding_wrapper/basic_rnn_cell/kernel "
        "rnn/embedding_wrapper/basic_rnn_cell/bias embedding_attention_decoder/embedding "
        + " ".join(
            f"embedding_attention_decoder/attention_decoder/{name}" for name in _OF_ATTENTION
        )
    ),
}


@pytest.mark.parametrize("name", _NAMES)
def test_tokens(name):
    """Variables have TensorFlow 1's names; a tensor chooses which token is read next."""
    tokens = [tf.constant(each) for each in _TOKENS]
    feeds = tf.placeholder(tf.bool, [])

    def build(scope, feed_previous):
        function = getattr(legacy_seq2seq, name)
        with tf.variable_scope("", reuse=scope):
            outputs, _ = function(
                tokens, tokens, _cell(), 3, 3, 5, feed_previous=feed_previous, dtype=tf.float32
            )
        return tf.stack(outputs)

    given = build(None, False)
    names = {each.op.name for each in tf.trainable_variables()}
    assert names == {f"{name}/{each}" for each in _NAMES[name].split()}
    fed, chosen = build(True, True), build(True, feeds)
    assert {each.op.name for each in tf.trainable_variables()} == names
    with tf.Session() as session:
        graphs.initialize_alike(session)
        first = session.run([given, fed, chosen], {feeds: False})
        second = session.run(chosen, {feeds: True})
    np.testing.assert_allclose(first[0], first[2], rtol=1e-5)
    np.testing.assert_allclose(first[1], second, rtol=1e-5)
    np.testing.assert_allclose(first[0][0], first[1][0], rtol=1e-5)  # the first token is given
    assert not np.allclose(first[0], first[1])


def test_attention_decoder():
    """Each step reads what the last one saw: the memory, by the softmax of a layer's scores."""
    memory = np.random.RandomState(1).normal(size=[2, 5, 3]).astype(np.float32)
    inputs = [tf.constant(each) for each in _STEPS[:2]]
    outputs, _ = legacy_seq2seq.attention_decoder(
        inputs, tf.zeros([2, 4]), tf.constant(memory), _cell(), output_size=6
    )
    found, values = _run(outputs)
    values = {name.removeprefix("attention_decoder/"): each for name, each in values.items()}

    def linear(parts, scope):
        return np.concatenate(parts, 1) @ values[f"{scope}kernel"] + values[f"{scope}bias"]

    state, seen = np.zeros([2, 4]), np.zeros([2, 3])
    for number in range(2):
        state = _step(linear([_STEPS[number], seen], ""), state, values, "basic_rnn_cell")
        keys = memory @ values["AttnW_0"][0, 0] + linear([state], "Attention_0/")[:, None]
        scores = np.exp((np.tanh(keys) * values["AttnV_0"]).sum(2))
        seen = np.einsum("bt,btd->bd", scores / scores.sum(1, keepdims=True), memory)
        expected = linear([state, seen], "AttnOutputProjection/")
        np.testing.assert_allclose(found[number], expected, rtol=1e-4, atol=1e-6)


_LOGITS = np.random.RandomState(2).normal(size=[3, 2, 3]).astype(np.float32)
_WEIGHTS = np.array([[1, 1], [1, 0], [0.5, 0]], np.float32)
_LOSSES = (
    np.log(np.exp(_LOGITS).sum(2))
    - np.take_along_axis(_LOGITS, np.array(_TOKENS)[..., None], 2)[..., 0]
) * _WEIGHTS


@pytest.mark.one_mode
def test_losses():
    """Weighted cross entropies, over the weights of each sequence, then over the sequences."""
    arguments = list(_LOGITS), list(map(tf.constant, _TOKENS)), list(_WEIGHTS)
    found, _ = _run(
        [
            legacy_seq2seq.sequence_loss_by_example(*arguments),
            legacy_seq2seq.sequence_loss_by_example(*arguments, average_across_timesteps=False),
            legacy_seq2seq.sequence_loss(*arguments),
            legacy_seq2seq.sequence_loss(*arguments, average_across_batch=False),
        ]
    )
    each = _LOSSES.sum(0) / [2.5, 1]
    for value, expected in zip(found, [each, _LOSSES.sum(0), each.mean(), each.sum()], strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.one_mode
@pytest.mark.parametrize("per_example", [True, False])
def test_buckets(per_example):
    """Each bucket has the outputs and the loss of its own number of steps."""
    inputs = [tf.constant(each) for each in _STEPS]
    targets = list(map(tf.constant, _TOKENS))
    outputs, losses = legacy_seq2seq.model_with_buckets(
        inputs,
        [tf.constant(each) for each in _LOGITS],
        targets,
        list(_WEIGHTS),
        [(1, 2), (3, 3)],
        lambda read, written: (written, None),
        per_example_loss=per_example,
    )
    assert [len(each) for each in outputs] == [2, 3]
    found, _ = _run(losses)
    for value, steps in zip(found, [2, 3], strict=True):
        each = _LOSSES[:steps].sum(0) / _WEIGHTS[:steps].sum(0)
        np.testing.assert_allclose(value, each if per_example else each.mean(), rtol=1e-5)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: legacy_seq2seq.sequence_loss([1], [1, 2], [1]), "as many, got 1, 2, 1"),
        (
            lambda: legacy_seq2seq.model_with_buckets([1], [1], [1], [1], [(2, 1)], None),
            r"at least \[2, 1\] for the longest bucket, got \[1, 1\]",
        ),
        (
            lambda: legacy_seq2seq.attention_decoder([], None, tf.zeros([1, 1, 1]), None),
            "at least 1, got 0 and 1",
        ),
        (
            lambda: legacy_seq2seq.attention_decoder(
                [1], None, tf.placeholder(tf.float32, [None, None, 3]), None
            ),
            "attention_states must have a shape",
        ),
        (
            lambda: legacy_seq2seq.embedding_rnn_decoder(
                [], None, None, 3, 2, (tf.zeros([4, 2]), tf.zeros([3]))
            ),
            r"output_projection must be \[outputs, 3\]",
        ),
    ],
)
def test_refusals(make, message):
    """What cannot be is told with its values."""
    with pytest.raises(ValueError, match=message):
        make()
