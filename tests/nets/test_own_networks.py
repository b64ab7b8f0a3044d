"""The networks without a published original, computed again in numpy."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from nets import mnist_mlp, nets_factory, resnet_9, text_lstm
from tests.nets import graphs, reference
from tests.nets.values import evaluate_initial

TOKENS = np.array([[3, 1, 4, 1, 5], [2, 6, 5, 3, 0], [5, 5, 5, 5, 5]])
SMALL = {"vocabulary_size": 7, "embedding_size": 3, "hidden_size": 4}


def run(fetches, feed=None):
    """Runs the current graph on the reference weights; returns the values and the weights."""
    with graphs.session(tf.get_default_graph()) as sess:
        graphs.load_weights(sess)
        weights = sess.run({v.op.name: v for v in tf.global_variables()})
        return sess.run(fetches, feed), weights


def sigmoid(x):
    """Returns the logistic function."""
    return 1 / (1 + np.exp(-x))


def softmax(x):
    """Returns the softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def lstm(embedded, weights, biases):
    """Returns the outputs of an LSTM, step by step and example by example."""
    size = len(biases) // 4
    outputs = np.zeros([embedded.shape[1], embedded.shape[0], size])
    for example, words in enumerate(embedded):
        output, cell = np.zeros(size), np.zeros(size)
        for time, word in enumerate(words):
            gates = np.concatenate([word, output]) @ weights + biases
            i, j, f, o = gates.reshape(4, size)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(j)
            output = sigmoid(o) * np.tanh(cell)
            outputs[time, example] = output
    return outputs


def test_mnist_mlp_in_numpy():
    """The logits of `mnist_mlp` are those of a 784-500-10 network with ReLU."""
    images = reference.images([3, 28, 28, 1])
    logits, end_points = graphs.build("mnist_mlp", tf.constant(images))
    (actual, predictions), weights = run([logits, end_points["Predictions"]])
    assert {name: value.shape for name, value in weights.items()} == {
        "mnist_mlp/hidden/weights": (784, 500),
        "mnist_mlp/hidden/biases": (500,),
        "mnist_mlp/logits/weights": (500, 10),
        "mnist_mlp/logits/biases": (10,),
    }
    w1, b1, w2, b2 = (value.astype(np.float64) for value in weights.values())
    expected = np.maximum(images.reshape(3, 784) @ w1 + b1, 0) @ w2 + b2
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(predictions, softmax(expected), rtol=1e-3, atol=1e-6)


def test_mnist_mlp_is_regularized():
    """Each weight of `mnist_mlp` has the L2 loss weight_decay * sum(w^2) / 2; biases have none."""
    graphs.build("mnist_mlp", tf.zeros([1, 28, 28, 1]), weight_decay=0.01)
    losses, weights = run(tf.losses.get_regularization_losses())
    expected = [
        0.01 * np.sum(weights[f"mnist_mlp/{layer}/weights"].astype(np.float64) ** 2) / 2
        for layer in ("hidden", "logits")
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


def test_mnist_mlp_needs_a_known_size():
    """An image of unknown height has no number of weights."""
    message = r"^images must have a known height and width, got shape \(2, None, 28, 1\)"
    with pytest.raises(ValueError, match=message):
        mnist_mlp.mnist_mlp(tf.placeholder(tf.float32, [2, None, 28, 1]))


def convolution(x, kernel):
    """Returns the convolution by a 3 x 3 kernel that keeps height and width."""
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, kernel, optimize=True)


def unit_patches(x):
    """Returns sums and differences of patches of 2 x 2 pixels: down, across, of colours."""
    x = np.pad(x, [(0, 0), (0, 1), (0, 1), (0, 0)])
    across = [x[:, :, :-1] + x[:, :, 1:], x[:, :, :-1] - x[:, :, 1:]]
    parts = []
    for down in (lambda y: y[:, :-1] + y[:, 1:], lambda y: y[:, :-1] - y[:, 1:]):
        for part in map(down, across):
            red, green, blue = np.moveaxis(part, -1, 0)
            parts += [
                (red + green + blue) / np.sqrt(3),
                (red - blue) / np.sqrt(2),
                (2 * green - red - blue) / np.sqrt(6),
            ]
    return np.stack(parts, axis=-1) / 2


@pytest.mark.parametrize("first", [3, 0])
def test_resnet_9_in_numpy(first):
    """The logits of `resnet_9` are those of its convolutions, two shortcuts and first layer."""
    images = reference.images([2, 20, 16, 3])
    logits, end_points = graphs.build("resnet_9", tf.constant(images), channels=(first, 6, 8, 5))
    (actual, predictions), weights = run([logits, end_points["Predictions"]])
    assert sum(name.endswith("weights") for name in weights) == (9 if first else 8)
    weights = {
        name.removeprefix("resnet_9/"): value.astype(np.float64) for name, value in weights.items()
    }

    def layer(x, scope, after=lambda x: x):
        x = after(convolution(x, weights[f"{scope}/weights"]))
        beta, gamma, mean, variance = (
            weights[f"{scope}/BatchNorm/{name}"]
            for name in ("beta", "gamma", "moving_mean", "moving_variance")
        )
        return np.maximum((x - mean) / np.sqrt(variance + 1e-5) * gamma + beta, 0)

    def halved(x):
        height, width = (side // 2 * 2 for side in x.shape[1:3])
        x = x[:, :height, :width]
        return x.reshape(len(x), height // 2, 2, width // 2, 2, -1).max(axis=(2, 4))

    def patch_layer(x):
        mean, variance = (weights[f"conv/BatchNorm/moving_{name}"] for name in ("mean", "variance"))
        x = (unit_patches(x) - mean) / np.sqrt(variance + 1e-5)
        return np.maximum(np.concatenate([x, -x], axis=-1), 0)

    x = layer(images, "conv") if first else patch_layer(images)
    for stage in (1, 2, 3):
        x = layer(x, f"stage_{stage}/conv", after=halved)
        if stage != 2:
            unit = f"stage_{stage}/unit/conv"
            x = x + layer(layer(x, f"{unit}1"), f"{unit}2")
    expected = x.max(axis=(1, 2)) @ weights["logits/weights"] / 8
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(predictions, softmax(expected), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("keywords", "shape", "message"),
    [
        (
            {"channels": (3, 4, 0, 5)},
            [2, 32, 32, 3],
            "channels must be a whole number of at least 1, got 0",
        ),
        ({"channels": (3, 4)}, [2, 32, 32, 3], r"channels must be four numbers, got \(3, 4\)"),
        ({}, [2, 15, 32, 3], r"images must be at least 16 pixels high and wide, got shape \(2, 15"),
    ],
)
def test_resnet_9_refuses(keywords, shape, message):
    """A width or an image that leaves nothing is named."""
    with pytest.raises(ValueError, match=f"^{message}"):
        resnet_9.resnet_9(tf.zeros(shape), **keywords)


@pytest.mark.parametrize("dtype", [tf.int32, tf.uint8])
def test_text_lstm_in_numpy(dtype):
    """The logits of `text_lstm` are those of the LSTM's equations, one step at a time."""
    logits, end_points = graphs.build("text_lstm", tf.constant(TOKENS, dtype), 2, **SMALL)
    (actual, outputs), weights = run([logits, end_points["outputs"]])
    weights = {name.removeprefix("text_lstm/"): value for name, value in weights.items()}
    expected = lstm(weights["embeddings"][TOKENS], weights["lstm/weights"], weights["lstm/biases"])
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)
    expected_logits = expected[-1] @ weights["logits/weights"] + weights["logits/biases"]
    np.testing.assert_allclose(actual, expected_logits, rtol=1e-4, atol=1e-5)


def test_text_lstm_takes_any_batch_and_length():
    """Batch and length may be unknown until the graph runs."""
    tokens = tf.placeholder(tf.int64, [None, None])
    logits, _ = graphs.build("text_lstm", tokens, 2, **SMALL)
    assert logits.shape.as_list() == [None, 2]
    values, _ = run(logits, {tokens: TOKENS})
    with tf.Graph().as_default():
        known, _ = graphs.build("text_lstm", tf.constant(TOKENS), 2, **SMALL)
        expected, _ = run(known)
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_text_lstm_learns_sparsely():
    """The embeddings' gradient is `IndexedSlices` with a row per token, even with weight decay."""
    logits, _ = graphs.build("text_lstm", tf.constant(TOKENS), 2, True, weight_decay=0.1, **SMALL)
    loss = tf.losses.sparse_softmax_cross_entropy([0, 1, 1], logits)
    total = loss + tf.add_n(tf.losses.get_regularization_losses())
    embeddings = tf.trainable_variables("text_lstm/embeddings")[0]
    gradient = tf.gradients(total, embeddings)[0]
    assert isinstance(gradient, tf.IndexedSlices)
    (indices, values), _ = run([gradient.indices, gradient.values])
    assert sorted(indices) == sorted(TOKENS.ravel())
    assert values.shape == (TOKENS.size, SMALL["embedding_size"])


def test_text_lstm_without_classes():
    """Without classes the network returns the last output. The forget gate's bias starts at 1, the
    other gates' at 0.
    """
    network_fn = nets_factory.get_network_fn("text_lstm", None)
    features, end_points = network_fn(tf.constant(TOKENS), **SMALL)
    assert features is end_points["last_output"]
    assert features.shape.as_list() == [3, 4]
    biases = evaluate_initial(tf.trainable_variables("text_lstm/lstm/biases")[0])
    np.testing.assert_array_equal(biases.reshape(4, 4), np.outer([0, 0, 1, 0], np.ones(4)))


@pytest.mark.parametrize(
    ("field", "value"), [("vocabulary_size", 0), ("embedding_size", -3), ("hidden_size", 1.5)]
)
def test_text_lstm_rejects_sizes(field, value):
    """A size that is not a whole number of at least 1 is named."""
    message = f"^{field} must be a whole number of at least 1, got {value}"
    with pytest.raises(ValueError, match=message):
        text_lstm.text_lstm(tf.constant(TOKENS), **{field: value})
