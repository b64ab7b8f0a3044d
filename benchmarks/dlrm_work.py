"""The work of the benchmarks of DLRM: how large the network is, and the clicks of its steps."""

import itertools
from typing import Any

import numpy as np
import tensorflow as tf

from examples import dlrm

tf1 = tf.compat.v1
# The network that Facebook's script for Criteo's Kaggle data has.
WIDTH, BOTTOM, TOP = 16, (512, 256, 64), (512, 256)
LEARNING_RATE = 0.001
# A round goes through them again and again.
NUM_BATCHES = 40
# Of each worker of a cluster.
PS_BATCH_SIZE = 128


def clicks(batch_size: int) -> dlrm.Clicks:
    """Arrays of `NUM_BATCHES` batches of clicks, such as ids int64 [batches, n, 26]."""
    known = dlrm.KnownModel(seed=1)
    made = [known.batch(number, batch_size) for number in range(NUM_BATCHES)]
    return dlrm.Clicks(*(np.stack(column) for column in zip(*made, strict=True)))


def add_loss(batch_size: int) -> None:
    """A `model_fn`: the network on the next batch."""
    data = tf.data.Dataset.from_tensor_slices(clicks(batch_size)).repeat().prefetch(2)
    iterator = tf1.data.make_initializable_iterator(data)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    batch = iterator.get_next()
    logits = dlrm.network(batch, BOTTOM, TOP, WIDTH, is_training=True)
    tf1.losses.sigmoid_cross_entropy(batch.labels, logits)


def model_fn() -> None:
    """That of a worker of a cluster."""
    add_loss(PS_BATCH_SIZE)


def mlp_shapes(inputs: int, units: Any) -> list[tuple[int, int]]:
    """Shapes of the weights of fully connected layers."""
    sizes = [inputs, *units]
    return list(itertools.pairwise(sizes))


def num_pairs() -> int:
    """How many products the top layers get."""
    count = len(dlrm.CARDINALITIES) + 1
    return count * (count - 1) // 2
