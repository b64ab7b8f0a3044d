"""A table of tiny models over which the laws of deployment are run.

Each golden has examples and a `model_fn(features, labels)` that adds losses and
returns its predictions.  Initial values and examples follow formulas, so that two
graphs start from the same numbers.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, gpus, slim
from model_deploy.settings import GpuSettings
from tests import devices

# Divided by 1, 2, 3, 4, 6, 8 clones.
NUM_EXAMPLES = 24
NUM_CLASSES = 3
VOCABULARY = 11


class LogicalDevices(DeploymentConfig):
    """Puts clone i on `CPU:i`, as it would be on `GPU:i`, for sessions of `cpu_config`.

    With `pytest --gpu` it is on a GPU.
    """

    def clone_device(self, clone_index):
        """The clone's GPU, with CPU in place of GPU unless tests are to use GPUs."""
        if self.all_reduce or self.devices_per_clone > 1:  # each needs devices of its own
            devices.need(self.num_clones * self.devices_per_clone)
        return devices.of_clone(super().clone_device(clone_index))


def cpu_config(num_devices: int = 4, *, rewritten: bool = True) -> tf.ConfigProto:
    """A session config with several CPU devices, and no other placement than asked for.

    With `pytest --gpu` it has the GPUs, too. Else graphs are rewritten once, as the library has it
    for clones on the CPU: TensorFlow's own twice take longer than all steps.

    Args:
      num_devices: logical CPUs.
      rewritten: whether TensorFlow rewrites graphs before they run.
    """
    proto = devices.session_config(num_devices)
    if not devices.on_gpus():
        proto = gpus.session_config(GpuSettings(), on_cpu=True, base=proto)
    proto.graph_options.rewrite_options.disable_meta_optimizer = not rewritten
    return proto


@dataclasses.dataclass(frozen=True)
class Golden:
    """A tiny model.

    Attributes:
      name: what tests are called by.
      features: examples, [NUM_EXAMPLES, ...].
      labels: one per example.
      model_fn: builds the model for a batch.
      sparse: names of the variables with sparse gradients.
      regularized: whether it has regularization losses.
      batch_law: whether n clones on equal parts of a batch equal one on the whole.
      prepare: None, or makes `model_fn` for a configuration, before there are clones.
    """

    name: str
    features: np.ndarray
    labels: np.ndarray
    model_fn: Callable[[Any, Any], Any] | None
    sparse: tuple[str, ...] = ()
    regularized: bool = False
    batch_law: bool = True
    prepare: Callable[[DeploymentConfig], Callable[[Any, Any], Any]] | None = None


def formula(shape, dtype=tf.float32, partition_info=None):
    """An initializer: sin(1), sin(2), ... over the shape, times 0.5."""
    del partition_info
    count = int(np.prod(shape))
    values = 0.5 * np.sin(np.arange(1, count + 1)).reshape(shape)
    return tf.constant(values, dtype)


def _numbers(*shape):
    return np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


def _linear(features, labels):
    weights = tf.get_variable("weights", [2, 1], initializer=formula)
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    predictions = tf.matmul(features, weights) + bias
    tf.losses.mean_squared_error(labels, predictions)
    return predictions


def _slim_mlp(features, labels):
    with slim.arg_scope(
        [slim.fully_connected],
        weights_initializer=formula,
        weights_regularizer=slim.l2_regularizer(0.01),
    ):
        hidden = slim.fully_connected(features, 5, activation_fn=tf.nn.tanh, scope="hidden")
        logits = slim.fully_connected(hidden, NUM_CLASSES, activation_fn=None, scope="logits")
    slim.losses.softmax_cross_entropy(logits, tf.one_hot(labels, NUM_CLASSES))
    return {"logits": logits, "classes": tf.argmax(logits, 1)}


def classify(net, labels):
    """Adds the softmax loss of a layer of `NUM_CLASSES`; returns its logits."""
    logits = slim.fully_connected(
        slim.flatten(net),
        NUM_CLASSES,
        activation_fn=None,
        weights_initializer=formula,
        scope="logits",
    )
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return logits


def _convolution(features, labels):
    net = slim.conv2d(
        features,
        4,
        [3, 3],
        weights_initializer=formula,
        weights_regularizer=slim.l2_regularizer(0.01),
        scope="conv",
    )
    return classify(slim.max_pool2d(net, [2, 2]), labels)


def _embedding(features, labels):
    table = tf.get_variable("table", [VOCABULARY, 4], initializer=formula)
    words = tf.nn.embedding_lookup(table, features)
    return classify(tf.reduce_mean(words, axis=1), labels)


def _tied_embedding(features, labels):
    table = tf.get_variable("table", [VOCABULARY, 4], initializer=formula)
    words = tf.reduce_mean(tf.nn.embedding_lookup(table, features), axis=1)
    logits = tf.matmul(words, table, transpose_b=True)  # dense and sparse uses of one table
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return [logits, {"words": words}]


def _loop(features, labels):
    weights = tf.get_variable("weights", [4, 4], initializer=formula)

    def body(i, state):
        return i + 1, tf.tanh(tf.matmul(state, weights) + features[:, i])

    start = (tf.constant(0), tf.zeros_like(features[:, 0]))
    _, state = tf.while_loop(lambda i, _: i < 3, body, start)
    tf.losses.mean_squared_error(labels, tf.reduce_sum(state, axis=1))


def _batch_norm(features, labels):
    net = slim.batch_norm(features, decay=0.9, scale=True, is_training=True, scope="norm")
    predictions = slim.fully_connected(
        net, 1, activation_fn=None, weights_initializer=formula, scope="out"
    )
    tf.losses.mean_squared_error(labels, predictions)
    return predictions


_CLASSES = np.arange(NUM_EXAMPLES) * 7 % NUM_CLASSES
# The last examples repeat words of the first, so that clones share rows.
_WORDS = np.arange(NUM_EXAMPLES * 5).reshape(NUM_EXAMPLES, 5) * 3 % VOCABULARY

GOLDENS = {
    golden.name: golden
    for golden in (
        Golden("linear", _numbers(NUM_EXAMPLES, 2), _numbers(NUM_EXAMPLES, 1), _linear),
        Golden("slim_mlp", _numbers(NUM_EXAMPLES, 6), _CLASSES, _slim_mlp, regularized=True),
        Golden(
            "convolution", _numbers(NUM_EXAMPLES, 4, 4, 2), _CLASSES, _convolution, regularized=True
        ),
        Golden("embedding", _WORDS, _CLASSES, _embedding, sparse=("table",)),
        Golden("tied_embedding", _WORDS, np.arange(NUM_EXAMPLES) % VOCABULARY, _tied_embedding),
        Golden("loop", _numbers(NUM_EXAMPLES, 3, 4), _numbers(NUM_EXAMPLES), _loop),
        Golden(
            "batch_norm",
            _numbers(NUM_EXAMPLES, 3),
            _numbers(NUM_EXAMPLES, 1),
            _batch_norm,
            batch_law=False,
        ),
    )
}
BATCH_LAW_GOLDENS = [name for name, golden in GOLDENS.items() if golden.batch_law]


def feed_clones(golden: Golden, num_clones: int) -> Callable[[], Any]:
    """A `model_fn` without arguments that gives clone i the i-th part of the examples."""
    parts = iter(
        zip(np.split(golden.features, num_clones), np.split(golden.labels, num_clones), strict=True)
    )

    def model_fn():
        features, labels = next(parts)
        return golden.model_fn(tf.constant(features), tf.constant(labels))

    return model_fn
