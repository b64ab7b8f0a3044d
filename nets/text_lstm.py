"""A text classifier: embedding, LSTM, linear classifier over the last output.

S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory" (1997), with the forget gate of F. Gers,
J. Schmidhuber, F. Cummins, "Learning to Forget" (2000). The gates are of the form

    i, j, f, o = split([x, h] W + b)
    c' = sigmoid(f) c + sigmoid(i) tanh(j);  h' = sigmoid(o) tanh(c')

where the part of `b` that belongs to `f` starts at 1, as R. Jozefowicz, W. Zaremba, I. Sutskever
found to matter, "An Empirical Exploration of Recurrent Network Architectures" (2015).
"""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import Network, Tokens, check_at_least, takes


@takes(Tokens(size=100))
def text_lstm(
    tokens: Any,
    num_classes: int | None = 2,
    is_training: bool = False,
    vocabulary_size: int = 20000,
    embedding_size: int = 64,
    hidden_size: int = 128,
    dropout_keep_prob: float = 0.5,
    scope: str = "text_lstm",
) -> tuple[Any, dict[str, Any]]:
    """Builds the classifier. Gradients of the embedding are `IndexedSlices`.

    Args:
      tokens: ids `[batch, length]` of an integer type, in `[0, vocabulary_size)`. Texts of one
        batch are as long as each other; pad at the front.
      num_classes: width of the logits; 0 or None returns the last output.
      is_training: whether dropout is active.
      vocabulary_size: number of different tokens.
      embedding_size: width of a token's embedding.
      hidden_size: width of the LSTM's output and of its cell.
      dropout_keep_prob: share of the last output that dropout keeps.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, hidden_size]`; and the end points
      `embedded` `[batch, length, embedding_size]`, `outputs` `[length, batch, hidden_size]`,
      `last_output`, and with classes `Logits` and `Predictions`.

    Raises:
      ValueError: if `tokens` has another rank or type or holds no token, `num_classes` is
        negative, or a size is less than 1.
    """
    check_at_least("vocabulary_size", vocabulary_size, 1)
    check_at_least("embedding_size", embedding_size, 1)
    check_at_least("hidden_size", hidden_size, 1)
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "text_lstm", [tokens]):
        embeddings = slim.model_variable(
            "embeddings",
            [vocabulary_size, embedding_size],
            initializer=tf.random_uniform_initializer(-0.05, 0.05),
        )
        embedded = end_points["embedded"] = tf.nn.embedding_lookup(
            embeddings, tf.cast(tokens, tf.int64)
        )
        end_points["outputs"] = _lstm(embedded, hidden_size)
        net = end_points["last_output"] = end_points["outputs"][-1]
        if not num_classes:
            return net, end_points
        net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout")
        logits = slim.fully_connected(net, num_classes, activation_fn=None, scope="logits")
    end_points["Logits"] = logits
    end_points["Predictions"] = slim.softmax(logits, scope="Predictions")
    return logits, end_points


@slim.add_arg_scope
def _lstm(
    inputs: Any, hidden_size: int, weights_initializer: Any = None, weights_regularizer: Any = None
) -> Any:
    """Runs an LSTM over `[batch, length, size]`; returns `[length, batch, hidden_size]`."""
    batch, size = tf.shape(inputs)[0], inputs.shape.as_list()[2]
    weights = slim.model_variable(
        "lstm/weights",
        [size + hidden_size, 4 * hidden_size],
        initializer=weights_initializer,
        regularizer=weights_regularizer,
    )
    biases = slim.model_variable(
        "lstm/biases", [4 * hidden_size], initializer=_forget_gate_starts_open
    )

    def step(state: tuple[Any, Any], token: Any) -> tuple[Any, Any]:
        output, cell = state
        gates = tf.matmul(tf.concat([token, output], axis=1), weights) + biases
        to_write, candidate, to_keep, to_show = tf.split(gates, 4, axis=1)
        cell = tf.sigmoid(to_keep) * cell + tf.sigmoid(to_write) * tf.tanh(candidate)
        return tf.sigmoid(to_show) * tf.tanh(cell), cell

    zeros = tf.zeros([batch, hidden_size], inputs.dtype)
    by_time = tf.transpose(inputs, [1, 0, 2])
    outputs, _ = tf.scan(step, by_time, initializer=(zeros, zeros))
    outputs.set_shape([inputs.shape[1], inputs.shape[0], hidden_size])
    return outputs


def _forget_gate_starts_open(shape: Any, dtype: Any = tf.float32, **_: Any) -> Any:
    zeros = tf.zeros([shape[0] // 4], dtype)
    return tf.concat([zeros, zeros, zeros + 1, zeros], axis=0)


def text_lstm_arg_scope(weight_decay: float = 0.0) -> Any:
    """Returns the arg scope of `text_lstm`: L2 on all weights but the embeddings.

    The loss of the embeddings would read, and train, every row in every step.
    """
    with slim.arg_scope(
        [slim.fully_connected, _lstm],
        weights_initializer=slim.xavier_initializer(),
        weights_regularizer=slim.l2_regularizer(weight_decay),
    ) as scope:
        return scope


NETWORKS = {"text_lstm": Network(text_lstm, text_lstm_arg_scope)}
