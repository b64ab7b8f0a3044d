"""The network of the benchmarks with parameter servers, and how many bytes its steps move."""

from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import images, sizes
from nets import nets_factory

tf1 = tf.compat.v1
BATCH_SIZE = 100
SIZE, HIDDEN, CLASSES = 28, 500, 10
LEARNING_RATE, DECAY_STEPS, DECAY = 0.01, 1000, 0.95
# The loss has half of it times the squared weights.
WEIGHT_DECAY = 0.0005

# Of the embedding; the table has `sizes.ROWS`.
ROWS_PER_STEP = sizes.SENTENCES * sizes.WORDS
SHAPES = ((SIZE * SIZE, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,))
FLOAT_BYTES = 4
MODEL_BYTES = FLOAT_BYTES * sum(int(np.prod(shape)) for shape in SHAPES)
# Each worker's step reads the variables and sends their gradients.
BYTES_PER_STEP = 2 * MODEL_BYTES
# A row is read, its gradient is sent, and its number (int64) goes both ways.
TOUCHED_BYTES_PER_STEP = 2 * ROWS_PER_STEP * (sizes.WIDTH * FLOAT_BYTES + 8)


def batches() -> Any:
    """A `tf.data.Dataset` without end of `(images, labels)`: float32 [100, 28, 28, 1], int64."""
    pixels, labels = images.read_arrays(None)
    dataset = tf.data.Dataset.from_tensor_slices((pixels.astype(np.float32) / 255, labels))
    dataset = dataset.shuffle(len(labels)).repeat().batch(BATCH_SIZE, drop_remainder=True)
    return dataset.prefetch(2)


def mlp_model_fn() -> None:
    """784-500-10 with L2 in graph mode, with its own input."""
    iterator = tf1.data.make_initializable_iterator(batches())
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    pixels, labels = iterator.get_next()
    network = nets_factory.get_network_fn("mnist_mlp", CLASSES, WEIGHT_DECAY, is_training=True)
    logits, _ = network(pixels)
    tf1.losses.sparse_softmax_cross_entropy(labels, logits)


def embedding_model_fn() -> None:
    """Random rows of the table are pulled towards one."""
    table = tf1.get_variable(
        "table", [sizes.ROWS, sizes.WIDTH], initializer=tf1.zeros_initializer()
    )
    words = tf.random.uniform([ROWS_PER_STEP], 0, sizes.ROWS, tf.int64)
    rows = tf.nn.embedding_lookup(table, words)
    tf1.losses.mean_squared_error(tf.ones([ROWS_PER_STEP, sizes.WIDTH]), rows)


MODEL_FNS = {"mlp": mlp_model_fn, "embedding": embedding_model_fn}
