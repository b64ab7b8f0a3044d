"""`tf.contrib.rnn`: cells against formulas in NumPy; variables by TensorFlow 1's names."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.tf1.contrib.legacy_keras import cells
from model_deploy.tf1.contrib.written import rnn
from tests import harness
from tests.goldens import GOLDENS, Golden, LogicalDevices, formula

pytestmark = [
    pytest.mark.filterwarnings(r"ignore:`tf\.nn\.rnn_cell\.\w+` is deprecated:UserWarning"),
]

_UNITS, _DEPTH = 3, 2
_INPUTS = np.random.RandomState(0).normal(size=[4, 2, _DEPTH]).astype(np.float32)
_STATE = np.random.RandomState(1).normal(size=[2, 2, _UNITS]).astype(np.float32)


@pytest.fixture(autouse=True)
def varied():
    """Variables, biases too, start with values of their own."""
    tf.get_variable_scope().set_initializer(tf.random_normal_initializer(seed=1))


def _run(values):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number, each in enumerate(tf.trainable_variables()):  # zeros would hide mistakes
            noise = np.random.RandomState(number).normal(size=each.shape.as_list())
            each.load(session.run(each) + noise, session)
        return session.run([values, {each.op.name: each for each in tf.trainable_variables()}])


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(inputs, memory, output, values, scope, *, clip=None, peephole=False):
    """A step of an LSTM with the forget bias 1."""
    gates = np.concatenate([inputs, output], 1) @ values[f"{scope}/kernel"]
    enters, new, forgets, leaves = np.split(gates + values[f"{scope}/bias"], 4, 1)
    see = {gate: values[f"{scope}/w_{gate}_diag"] if peephole else 0 for gate in "ifo"}
    memory = (
        _sigmoid(forgets + 1 + see["f"] * memory) * memory
        + _sigmoid(enters + see["i"] * memory) * np.tanh(new)
    )  # fmt: skip
    memory = memory if clip is None else np.clip(memory, -clip, clip)
    return memory, _sigmoid(leaves + see["o"] * memory) * np.tanh(memory)


_LSTMS = [
    pytest.param({}, {}, id="plain"),
    pytest.param({"cell_clip": 0.5}, {"clip": 0.5}, id="clipped"),
    pytest.param({"use_peephole": True}, {"peephole": True}, id="peephole"),
    pytest.param({"cell_clip": -1}, {}, id="no clip"),
]


@pytest.mark.one_mode
@pytest.mark.parametrize(("options", "formula"), _LSTMS)
def test_lstm_block_cell(options, formula):
    """A step of an LSTM."""
    cell = rnn.LSTMBlockCell(_UNITS, **options)
    found, values = _run(cell(tf.constant(_INPUTS[0]), cells.LSTMStateTuple(*_STATE)))
    memory, output = _lstm(_INPUTS[0], *_STATE, values, "lstm_cell", **formula)
    np.testing.assert_allclose(found[0], output, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found[1].c, memory, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("options", "formula"), _LSTMS)
def test_lstm_block_fused_cell(options, formula):
    """All steps; behind the end of a sequence outputs are 0 and the state stays."""
    cell = rnn.LSTMBlockFusedCell(_UNITS, **options)
    inputs = tf.constant(_INPUTS) if options else tf.unstack(tf.constant(_INPUTS))
    results = cell(inputs, tuple(map(tf.constant, _STATE)), sequence_length=[4, 2])
    gradients = tf.gradients(results[0], tf.trainable_variables())
    assert all(each is not None for each in gradients)
    (outputs, state), values = _run(results)
    memory, output = _STATE
    for step in range(4):
        is_in = np.array([[True], [step < 2]])
        new = _lstm(_INPUTS[step], memory, output, values, "lstm_fused_cell", **formula)
        np.testing.assert_allclose(outputs[step], np.where(is_in, new[1], 0), rtol=1e-4, atol=1e-5)
        memory, output = np.where(is_in, new[0], memory), np.where(is_in, new[1], output)
    np.testing.assert_allclose(state.c, memory, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.h, output, rtol=1e-4, atol=1e-5)


def test_fused_cell_shares_its_variables():
    """A second call has the variables of the first, and no state is a state of zeros."""
    cell = rnn.LSTMBlockFusedCell(_UNITS)
    (first, second, reverse), _ = _run(
        [
            cell(tf.constant(_INPUTS))[0],
            cell(tf.constant(_INPUTS), (tf.zeros([2, 3]), tf.zeros([2, 3])))[0],
            rnn.TimeReversedFusedRNN(cell)(tf.constant(_INPUTS[::-1]))[0],
        ]
    )
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, reverse[::-1])
    assert len(tf.trainable_variables()) == 2
    assert cell.num_units == _UNITS


@pytest.mark.one_mode
@pytest.mark.parametrize("kind", ["V1", "V2"])
def test_gru_block_cells(kind):
    """A step of a GRU, of either kind of names."""
    make = rnn.GRUBlockCell if kind == "V1" else rnn.GRUBlockCellV2
    state = _STATE[0]
    (output, _), values = _run(make(_UNITS)(tf.constant(_INPUTS[0]), tf.constant(state)))
    names = {
        "V1": ["w_ru", "b_ru", "w_c", "b_c"],
        "V2": ["gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias"],
    }[kind]
    assert list(values) == [f"gru_cell/{name}" for name in names]
    gates, gate_bias, candidate, bias = values.values()
    resets, keeps = np.split(
        _sigmoid(np.concatenate([_INPUTS[0], state], 1) @ gates + gate_bias), 2, 1
    )
    new = np.tanh(np.concatenate([_INPUTS[0], resets * state], 1) @ candidate + bias)
    np.testing.assert_allclose(output, keeps * state + (1 - keeps) * new, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("normalized", [True, False])
def test_layer_norm_basic_lstm_cell(normalized):
    """Gates and state are normalized, each with a gain and a shift of its own."""
    cell = rnn.LayerNormBasicLSTMCell(_UNITS, layer_norm=normalized)
    (output, state), values = _run(cell(tf.constant(_INPUTS[0]), cells.LSTMStateTuple(*_STATE)))
    scope = "layer_norm_basic_lstm_cell"

    def norm(gate, name):
        if not normalized:
            return gate
        whitened = (gate - gate.mean(1, keepdims=True)) / gate.std(1, keepdims=True)
        return whitened * values[f"{scope}/{name}/gamma"] + values[f"{scope}/{name}/beta"]

    gates = np.concatenate([_INPUTS[0], _STATE[1]], 1) @ values[f"{scope}/kernel"]
    gates += 0 if normalized else values[f"{scope}/bias"]
    enters, new, forgets, leaves = (
        norm(gate, name)
        for gate, name in zip(
            np.split(gates, 4, 1), ["input", "transform", "forget", "output"], strict=True
        )
    )
    memory = _STATE[0] * _sigmoid(forgets + 1) + _sigmoid(enters) * np.tanh(new)
    memory = norm(memory, "state")
    np.testing.assert_allclose(state.c, memory, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(output, np.tanh(memory) * _sigmoid(leaves), rtol=1e-3, atol=1e-4)
    assert len(values) == (11 if normalized else 2)


@pytest.mark.one_mode
def test_dropout_keeps_the_memory():
    """With nothing kept of what is new, the state is what was remembered."""
    cell = rnn.LayerNormBasicLSTMCell(_UNITS, layer_norm=False, dropout_keep_prob=1e-9)
    (_, state), values = _run(cell(tf.constant(_INPUTS[0]), cells.LSTMStateTuple(*_STATE)))
    scope = "layer_norm_basic_lstm_cell"
    gates = np.concatenate([_INPUTS[0], _STATE[1]], 1) @ values[f"{scope}/kernel"]
    forgets = np.split(gates + values[f"{scope}/bias"], 4, 1)[2]
    np.testing.assert_allclose(state.c, _STATE[0] * _sigmoid(forgets + 1), rtol=1e-4)


@pytest.mark.one_mode
def test_ugrnn_cell():
    """One gate chooses between the state and what is new."""
    (output, _), values = _run(
        rnn.UGRNNCell(_UNITS)(tf.constant(_INPUTS[0]), tf.constant(_STATE[0]))
    )
    both = np.concatenate([_INPUTS[0], _STATE[0]], 1) @ values["ugrnn_cell/kernel"]
    gate, new = np.split(both + values["ugrnn_cell/bias"], 2, 1)
    gate = _sigmoid(gate + 1)
    np.testing.assert_allclose(output, gate * _STATE[0] + (1 - gate) * np.tanh(new), rtol=1e-4)


@pytest.mark.parametrize("settings", [{"all_reduce": True}, {"copy_clones": True}], ids=str)
@pytest.mark.parametrize("kind", [rnn.NASCell, rnn.UGRNNCell])
def test_cells_train_on_clones_as_on_one(kind, settings):
    """A cell that makes variables by itself, as those of users do, has some in each clone."""

    def model_fn(features, labels):
        cell = kind(_UNITS)
        state = cell.zero_state(features.shape[0], tf.float32)
        with tf.variable_scope("cell", initializer=formula):
            for _ in range(2):
                output, state = cell(features, state)
        tf.losses.sparse_softmax_cross_entropy(labels, output)

    golden = GOLDENS["slim_mlp"]
    golden = Golden("cell", golden.features, golden.labels, model_fn)
    run = harness.Replica(LogicalDevices(num_clones=2, **settings), golden)
    harness.assert_same(run(), harness.one_clone(golden))


@pytest.mark.one_mode
@pytest.mark.parametrize("projected", [None, 4])
def test_nas_cell(projected):
    """Eight products with the inputs and with the output meet in pairs, as the paper has it."""
    memory = _STATE[0] * 0.5
    output = np.ones([len(memory), projected or _UNITS], np.float32) * 0.3
    state = cells.LSTMStateTuple(tf.constant(memory), tf.constant(output))
    cell = rnn.NASCell(_UNITS, projected, use_bias=True)
    (found, new), values = _run(cell(tf.constant(_INPUTS[0]), state))
    i = np.split(_INPUTS[0] @ values["nas_cell/kernel"], 8, 1)
    h = output @ values["nas_cell/recurrent_kernel"] + values["nas_cell/bias"]
    h = np.split(h, 8, 1)
    gate = [_sigmoid(i[k] + h[k]) for k in range(8)]
    left = np.tanh(gate[0] * np.maximum(i[1] + h[1], 0))
    right = np.tanh(gate[2] + np.maximum(i[3] * h[3], 0))
    cell_state = np.tanh(left + memory) * right
    third = np.tanh(np.tanh(i[4] + h[4]) * gate[5])
    fourth = _sigmoid(np.tanh(i[6] + h[6]) + gate[7])
    expected = np.tanh(cell_state * np.tanh(third + fourth))
    if projected:
        expected = expected @ values["nas_cell/projection_weights"]
    np.testing.assert_allclose(new.c, cell_state, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(new.h, found)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "inputs", "names"),
    [
        (
            lambda cell: rnn.InputProjectionWrapper(cell, 5),
            _INPUTS[0],
            {"input_projection_wrapper/kernel": [2, 5], "input_projection_wrapper/bias": [5]},
        ),
        (
            lambda cell: rnn.OutputProjectionWrapper(cell, 5),
            _INPUTS[0],
            {"output_projection_wrapper/kernel": [3, 5], "output_projection_wrapper/bias": [5]},
        ),
        (
            lambda cell: rnn.EmbeddingWrapper(cell, 7, 5),
            [[1], [6]],
            {"embedding_wrapper/embedding": [7, 5]},
        ),
    ],
    ids=["input", "output", "embedding"],
)
def test_wrappers(make, inputs, names):
    """What is around a cell has its variables, and the cell's are below."""
    cell = make(cells.BasicRNNCell(_UNITS))
    output, _ = cell(tf.constant(inputs), cell.zero_state(2, tf.float32))
    found = {each.op.name: each.shape.as_list() for each in tf.trainable_variables()}
    [scope] = {name.split("/")[0] for name in names}
    inner = {name for name in found if name.startswith(f"{scope}/basic_rnn_cell/")}
    assert {name: found[name] for name in set(found) - inner} == names
    assert len(inner) == 2
    assert output.shape.as_list() == [2, cell.output_size]
    assert cell.state_size == _UNITS


@pytest.mark.parametrize("dynamic", [True, False])
def test_stacked_layers(dynamic):
    """Each layer reads both directions of the one below; variables are in `cell_0`, `cell_1`."""
    forward, backward = ([cells.BasicRNNCell(_UNITS) for _ in range(2)] for _ in range(2))
    if dynamic:
        inputs = tf.constant(_INPUTS)
        outputs, ends, starts = rnn.stack_bidirectional_dynamic_rnn(
            forward, backward, inputs, dtype=tf.float32, time_major=True
        )
    else:
        inputs = tf.unstack(tf.constant(_INPUTS))
        steps, ends, starts = rnn.stack_bidirectional_rnn(
            forward, backward, inputs, dtype=tf.float32
        )
        outputs = tf.stack(steps)
    (found, last, first), values = _run([outputs, ends, starts])
    assert len(values) == 8
    assert {name.split("bidirectional_rnn", 2)[1].split("/")[1] for name in values} == {
        "cell_0",
        "cell_1",
    }
    below = _INPUTS
    for layer in range(2):
        sides = []
        for side, order in (("fw", 1), ("bw", -1)):
            scope = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{side}/basic_rnn_cell"
            state, outs = np.zeros([2, _UNITS]), []
            for step in below[::order]:
                both = np.concatenate([step, state], 1)
                state = np.tanh(both @ values[f"{scope}/kernel"] + values[f"{scope}/bias"])
                outs.append(state)
            expected = (last if side == "fw" else first)[layer]
            np.testing.assert_allclose(expected, state, rtol=1e-4)
            sides.append(np.stack(outs[::order]))
        below = np.concatenate(sides, 2)
    np.testing.assert_allclose(found, below, rtol=1e-4)


@pytest.mark.parametrize("dynamic", [True, False])
def test_fused_adaptor(dynamic):
    """A plain cell, step by step, is `dynamic_rnn`."""
    cell = cells.BasicRNNCell(_UNITS, name="cell")
    adaptor = rnn.FusedRNNCellAdaptor(cell, use_dynamic_rnn=dynamic)
    outputs, state = adaptor(tf.constant(_INPUTS), dtype=tf.float32, scope="same")
    (found, last), values = _run([outputs, state])
    state = np.zeros([2, _UNITS])
    for step in range(4):
        both = np.concatenate([_INPUTS[step], state], 1)
        state = np.tanh(both @ values["same/cell/kernel"] + values["same/cell/bias"])
        np.testing.assert_allclose(found[step], state, rtol=1e-4)
    np.testing.assert_allclose(last, state, rtol=1e-4)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [("Conv1D", [4]), ("Conv2D", [4, 5]), ("Conv3D", [2, 3, 4])],
)
def test_convolutional_lstm_cells(kind, sizes):
    """With a kernel of size 1 each place is an LSTM of its own."""
    cell = getattr(rnn, f"{kind}LSTMCell")(
        input_shape=[*sizes, _DEPTH], output_channels=_UNITS, kernel_shape=[1] * len(sizes)
    )
    random = np.random.RandomState(2)
    inputs = random.normal(size=[2, *sizes, _DEPTH]).astype(np.float32)
    state = random.normal(size=[2, 2, *sizes, _UNITS]).astype(np.float32)
    (output, last), values = _run(cell(tf.constant(inputs), cells.LSTMStateTuple(*state)))
    scope = f"conv_{kind[4]}d_lstm_cell"
    assert list(values) == [f"{scope}/kernel", f"{scope}/biases"]
    flat = {
        "cell/kernel": values[f"{scope}/kernel"].reshape([-1, 4 * _UNITS]),
        "cell/bias": values[f"{scope}/biases"],
    }
    places = [each.reshape([-1, each.shape[-1]]) for each in (inputs, *state)]
    memory, expected = _lstm(*places, flat, "cell")
    np.testing.assert_allclose(output.reshape([-1, _UNITS]), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(last.c.reshape([-1, _UNITS]), memory, rtol=1e-4, atol=1e-5)
    assert cell.zero_state(3, tf.float32).c.shape.as_list() == [3, *sizes, _UNITS]


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: rnn.Conv2DLSTMCell(input_shape=[4, 2], output_channels=3, kernel_shape=[1, 1]),
            r"must have 3 and 2 sizes, got \[4, 2\] and \[1, 1\]",
        ),
        (
            lambda: rnn.ConvLSTMCell(1, [4, 2], 3, [1], skip_connection=True),
            "skip_connection must be False, got True",
        ),
        (rnn.GRUBlockCellV2, "one of the two, got None and None"),
        (lambda: rnn.GRUBlockCellV2(2, 3), "one of the two, got 2 and 3"),
        (lambda: rnn.EmbeddingWrapper(None, 0, 3), "must be over 0, got 0 and 3"),
        (lambda: rnn.stack_bidirectional_rnn([1], [1, 2], []), r"at least 1, got \[1, 2\]"),
    ],
)
def test_refusals(make, message):
    """What cannot be is told with its values."""
    with pytest.raises(ValueError, match=message):
        make()
