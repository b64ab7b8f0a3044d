"""DLRM on clicks: 26 tables of embeddings that grow, and 13 numbers.

    python examples/dlrm.py --train_dir=dlrm_run

The network is that of Naumov et al., "Deep Learning Recommendation Model for Personalization and
Recommendation Systems", 2019 (https://arxiv.org/abs/1906.00091).  The clicks have the shape of
Criteo's, and are made here, from a known model: at the end the AUC on clicks that were kept for the
test stands beside the best possible one, that of the probabilities from which clicks were drawn.

    python examples/dlrm.py --train_dir=dlrm_ps_run --num_ps=2

starts two parameter servers and two workers, processes on this machine, which train the same
model without waiting for each other.
"""

import dataclasses
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import numpy as np
    import tensorflow.compat.v1 as tf

    from model_deploy import DeployedModel, DeploymentConfig, deploy, embeddings, train, training
    from model_deploy.cluster import ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command

NUM_NUMBERS = 13
# How many ids each column has: those of Criteo's Kaggle data, of the larger ones some.
CARDINALITIES = (
    *(1460, 583, 100_000, 100_000, 305, 24, 12_517, 633, 3, 93_145, 5683, 100_000, 3194),
    *(27, 14_992, 100_000, 10, 5652, 2173, 4, 100_000, 18, 15, 100_000, 105, 100_000),
)
TEST_BATCHES = 50


@dataclasses.dataclass(frozen=True)
class DlrmOptions(ClusterOptions, training.LoopOptions):
    """The settings of a run, beside those of the cluster and the loop; each is a flag."""

    train_dir: str = option("dlrm_run", "folder for checkpoints and events")
    num_clones: int = option(1, "clones, each with batches of its own", minimum=1)
    num_ps: int = option(0, "start so many parameter servers, and workers", minimum=0)
    num_workers: int = option(2, "workers to start with --num_ps", minimum=1)
    batch_size: int = option(2048, "clicks per clone and step", minimum=1)
    max_steps: int = option(1000, "number of the last step", minimum=1)
    learning_rate: float = option(0.05, "learning rate of Adagrad", above=0)
    width: int = option(16, "values of a row of a table", minimum=1)
    bottom: str = option("64", "units of the layers below the interaction")
    top: str = option("128,64", "units of the layers above it")
    seed: int = option(1, "number that clicks and initial values follow from", minimum=0)
    log_every_n_steps: int = option(50, "steps from one line to the next", minimum=1)


class Clicks(NamedTuple):
    """Some clicks, of arrays or of tensors.

    Attributes:
      numbers: float32 [clicks, 13], at least 0.
      ids: int64 [clicks, 26].
      labels: float32 [clicks], 1 for a click.
      scores: log-odds from which the labels were drawn, float32 [clicks].
    """

    numbers: Any
    ids: Any
    labels: Any
    scores: Any


class KnownModel:
    """Makes clicks: each id has an effect, so has each number, and so have pairs of ids."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        rng = np.random.default_rng(seed)
        self._effects = [rng.normal(size=count).astype(np.float32) for count in CARDINALITIES]
        self._slopes = rng.normal(0, 0.3, NUM_NUMBERS).astype(np.float32)

    def batch(self, number: int, size: int) -> Clicks:
        """The batch with a number, which follows from that number and the seed."""
        rng = np.random.default_rng([self._seed, number])
        logs = rng.exponential(1.0, [size, NUM_NUMBERS]).astype(np.float32)
        chances = rng.random([size, len(CARDINALITIES)])
        # Ids by a power law, the density of id + 1 falls with its power 1.5.
        last = np.array(CARDINALITIES) + 1.0
        ids = ((1 - chances * (1 - last**-POWER)) ** (-1 / POWER)).astype(np.int64) - 1
        effects = np.stack([each[ids[:, i]] for i, each in enumerate(self._effects)], 1)
        scores = (logs - 1) @ self._slopes + SCALE * effects.sum(1)
        scores += PAIRS * (effects[:, ::2] * effects[:, 1::2]).sum(1) - 1.5
        labels = (rng.random(size) < 1 / (1 + np.exp(-scores))).astype(np.float32)
        return Clicks(np.expm1(logs), ids, labels, scores.astype(np.float32))


POWER, SCALE, PAIRS = 0.7, 0.25, 0.15


def batches(options: DlrmOptions, first: int, stride: int, last: int | None = None) -> Any:
    """An iterator of the batches `first`, `first + stride`, ... before `last`."""
    known = KnownModel(options.seed)

    def make(number: Any) -> Clicks:
        types = Clicks(tf.float32, tf.int64, tf.float32, tf.float32)
        made = Clicks(
            *tf.numpy_function(lambda n: tuple(known.batch(n, options.batch_size)), [number], types)
        )
        widths = Clicks([NUM_NUMBERS], [len(CARDINALITIES)], [], [])
        for tensor, shape in zip(made, widths, strict=True):
            tensor.set_shape([options.batch_size, *shape])
        return made

    end = np.iinfo(np.int64).max if last is None else last
    data = tf.data.Dataset.range(first, end, stride).map(make).prefetch(2)
    return tf.data.make_one_shot_iterator(data)


def layers(net: Any, name: str, units: Sequence[int], last: Any = tf.nn.relu) -> Any:
    """Fully connected layers with ReLU; `last` is the activation of the last one."""
    for i, size in enumerate(units):
        weights = tf.get_variable(
            f"{name}_{i}/weights",
            [net.shape[1], size],
            initializer=tf.glorot_uniform_initializer(),
        )
        biases = tf.get_variable(f"{name}_{i}/biases", [size], initializer=tf.zeros_initializer())
        net = tf.nn.bias_add(tf.matmul(net, weights), biases)
        if i < len(units) - 1 or last is not None:
            net = tf.nn.relu(net)
    return net


def network(clicks: Clicks, options: DlrmOptions, is_training: bool) -> Any:
    """Logits of clicks, float32 [clicks]: equation of section 2 of the paper."""
    bottom, top = ([int(each) for each in text.split(",")] for text in (options.bottom, options.top))
    dense = layers(tf.log1p(clicks.numbers), "bottom", [*bottom, options.width])
    rows = [dense]
    for i, count in enumerate(CARDINALITIES):
        table = embeddings.GrowingTable(name=f"table_{i}", width=options.width, max_rows=count)
        rows.append(embeddings.look_up(table, clicks.ids[:, i], is_training=is_training))
    stacked = tf.stack(rows, 1)
    products = tf.matmul(stacked, stacked, transpose_b=True)
    pairs = tf.concat([products[:, i, :i] for i in range(1, len(rows))], 1)
    return layers(tf.concat([dense, pairs], 1), "top", [*top, 1], None)[:, 0]
