"""DLRM on clicks: 26 tables of embeddings that grow, and 13 numbers.

    python examples/dlrm.py --train_dir=dlrm_run

The network is that of Naumov et al., "Deep Learning Recommendation Model for Personalization and
Recommendation Systems", 2019 (https://arxiv.org/abs/1906.00091).  The clicks have the shape of
Criteo's and are made here, from a known model: at the end the AUC on clicks that no step has seen
stands beside the best possible one, that of the log-odds from which these clicks were drawn.

    python examples/dlrm.py --train_dir=dlrm_ps_run --num_ps=2

starts two parameter servers and two workers, processes on this machine, which train the same
model without waiting for each other.
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import numpy as np
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, deploy, embeddings, metrics, train, training
    from model_deploy.cluster import ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command
    from model_deploy.launch import launched_again
    from model_deploy.training import MetricsEvaluator

NUM_NUMBERS = 13
# Ids of each column in Criteo's Kaggle data, of the seven largest columns the first 100,000.
CARDINALITIES = (
    *(1460, 583, 100_000, 100_000, 305, 24, 12_517, 633, 3, 93_145, 5683, 100_000, 3194),
    *(27, 14_992, 100_000, 10, 5652, 2173, 4, 100_000, 18, 15, 100_000, 105, 100_000),
)
TEST_BATCHES = 64
START = embeddings.Normal(0.05)  # first values of rows


@dataclasses.dataclass(frozen=True)
class DlrmOptions(ClusterOptions, training.LoopOptions):
    """The settings of a run, beside those of the cluster and the loop; each is a flag."""

    train_dir: str = option("dlrm_run", "folder for checkpoints and events")
    num_clones: int = option(1, "clones, each with batches of its own", minimum=1)
    num_ps: int = option(0, "start so many parameter servers, and workers", minimum=0)
    num_workers: int = option(2, "workers to start with --num_ps", minimum=1)
    batch_size: int = option(2048, "clicks per clone and step", minimum=1)
    max_steps: int = option(2000, "number of the last step", minimum=1)
    learning_rate: float = option(0.002, "learning rate of Adam, in the first half", above=0)
    num_tables: int = option(26, "columns of ids that there are, of the first ones", minimum=1)
    width: int = option(16, "values in a row of a table", minimum=1)
    units: int = option(64, "units of the hidden layers, before and after the pairs", minimum=1)
    seed: int = option(1, "number that clicks and initial values follow from", minimum=0)
    log_every_n_steps: int = option(50, "steps from one line to the next", minimum=1)


class Clicks(NamedTuple):
    """Impressions, as arrays or as tensors.

    Attributes:
      numbers: float32 [n, 13], at least 0.
      ids: int64 [n, tables].
      labels: float32 [n], 1 for a click.
      scores: log-odds from which the labels were drawn, float32 [n].
    """

    numbers: Any
    ids: Any
    labels: Any
    scores: Any


class KnownModel:
    """Makes clicks: log-odds are a sum over numbers, ids and pairs of ids, each with its effect."""

    def __init__(self, seed: int, num_tables: int = len(CARDINALITIES)) -> None:
        self._seed, self._counts = seed, np.array(CARDINALITIES[:num_tables])
        rng = np.random.default_rng(seed)
        self._effects = [rng.normal(size=count).astype(np.float32) for count in self._counts]
        self._slopes = rng.normal(0, 0.2, NUM_NUMBERS).astype(np.float32)

    def batch(self, number: int, size: int) -> Clicks:
        """Returns the batch with a number, which follows from that number and the seed."""
        rng = np.random.default_rng([self._seed, number])
        logs = rng.exponential(1, [size, NUM_NUMBERS]).astype(np.float32)
        # Id k has about (k + 1)^-2 of the impressions, as 1 / u - 1 of an even u has.
        even = rng.uniform(1 / (1.0 + self._counts), 1, [size, len(self._counts)])
        ids = (1 / even).astype(np.int64) - 1
        effects = np.stack([each[ids[:, i]] for i, each in enumerate(self._effects)], 1)
        scores = (logs - 1) @ self._slopes + 0.25 * effects.sum(1) - 1.5
        scores += 0.2 * (effects[:, :-1:2] * effects[:, 1::2]).sum(1)
        labels = rng.random(size) < 1 / (1 + np.exp(-scores))
        return Clicks(np.expm1(logs), ids, labels.astype(np.float32), scores)


def batches(options: DlrmOptions, first: int, stride: int = 1, count: int | None = None) -> Any:
    """Returns an iterator of the batches `first`, `first + stride`, ...; of all, or so many."""
    known = KnownModel(options.seed, options.num_tables)
    like = known.batch(0, options.batch_size)

    def make(number: Any) -> Clicks:
        made = tf.numpy_function(
            lambda n: tuple(known.batch(n, options.batch_size)),
            [number],
            [array.dtype for array in like],
        )
        shapes = [array.shape for array in like]
        return Clicks(*map(tf.ensure_shape, made, shapes))

    numbers = tf.data.Dataset.range(first, np.iinfo(np.int64).max, stride)
    data = numbers.take(-1 if count is None else count).map(make).prefetch(2)
    return tf.data.make_one_shot_iterator(data)


def layers(net: Any, name: str, units: Sequence[int]) -> Any:
    """Fully connected layers, with ReLU in between and none at the end."""
    for i, size in enumerate(units):
        net = tf.nn.relu(net) if i else net
        shape = [net.shape[1], size]
        weights = tf.get_variable(
            f"{name}{i}/weights", shape, initializer=tf.glorot_uniform_initializer()
        )
        biases = tf.get_variable(f"{name}{i}/biases", [size], initializer=tf.zeros_initializer())
        net = tf.nn.bias_add(tf.matmul(net, weights), biases)
    return net


def interactions(vectors: Any) -> Any:
    """Returns the products of all pairs of different vectors.

    Args:
      vectors: float32 [n, count, width].

    Returns:
      float32 [n, count * (count - 1) / 2].
    """
    count = vectors.shape.as_list()[1]
    products = tf.matmul(vectors, vectors, transpose_b=True)
    rows, columns = np.tril_indices(count, -1)
    flat = tf.transpose(tf.reshape(products, [-1, count * count]))
    return tf.transpose(tf.gather(flat, rows * count + columns))


def network(
    clicks: Clicks, bottom: Sequence[int], top: Sequence[int], width: int, is_training: bool
) -> Any:
    """Builds figure 1 of the paper.

    Args:
      clicks: tensors.
      bottom: units of the hidden layers between the numbers and the pairs.
      top: units of the hidden layers after the pairs.
      width: values in a row of a table.
      is_training: whether tables make rows.

    Returns:
      Logits, float32 [n].
    """
    dense = tf.nn.relu(layers(tf.log1p(clicks.numbers), "bottom", [*bottom, width]))
    vectors = [dense]
    for i, count in enumerate(CARDINALITIES[: clicks.ids.shape.as_list()[1]]):
        table = embeddings.GrowingTable(
            name=f"table_{i}", width=width, max_rows=count, initial=START
        )
        vectors.append(embeddings.look_up(table, clicks.ids[:, i], is_training=is_training))
    pairs = interactions(tf.stack(vectors, 1))
    return layers(tf.concat([dense, pairs], 1), "top", [*top, 1])[:, 0]


def logits_of(clicks: Clicks, options: DlrmOptions, *, is_training: bool) -> Any:
    """Logits of clicks, float32 [n]."""
    hidden = [options.units]
    return network(clicks, hidden, hidden, options.width, is_training)


def add_loss(clicks: Any, options: DlrmOptions) -> None:
    """The `model_fn` of training: takes the next batch for each clone."""
    batch = clicks.get_next()
    logits = logits_of(batch, options, is_training=True)
    tf.losses.sigmoid_cross_entropy(batch.labels, logits)
    metrics.add_metric(metrics.AUC(), batch.labels, tf.sigmoid(logits))


def add_test_metrics(batch: Clicks, options: DlrmOptions) -> None:
    """The `model_fn` of the test."""
    logits = logits_of(batch, options, is_training=False)
    metrics.add_metric(metrics.AUC(), batch.labels, logits)
    metrics.add_metric(metrics.AUC("best possible auc"), batch.labels, batch.scores)
    metrics.add_metric(metrics.LogLoss(), batch.labels, tf.sigmoid(logits))


def run_task(options: DlrmOptions) -> None:
    """Does the part of this process in its cluster; without one, trains by itself."""
    place = training.join_cluster(os.environ, options)  # a parameter server stays in there
    with named_as(num_ps_tasks="ps_hosts", num_replicas="worker_hosts"):
        on_cpu = not tf.config.list_physical_devices("GPU")
        config = place.deployment(DeploymentConfig(options.num_clones, clone_on_cpu=on_cpu))
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        with tf.device(config.inputs_device()):
            # The first batches are those of the test.
            own = batches(options, TEST_BATCHES + config.replica_id, config.num_replicas)
        with tf.device(config.variables_device()):
            step = tf.train.get_or_create_global_step()
        with tf.device(step.device):  # where the rate is needed: it does not move then
            rate = learning_rate(step, options)
        # Adam's tables, at the cost of the rows of a step.
        optimizer = training.RowAdamOptimizer(rate)
        train(
            deploy(config, add_loss, [own, options], optimizer=optimizer),
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.batch_size * options.num_clones,
            unit="examples",
            learning_rate=rate,
            place=place,
            **options.part(training.LoopOptions),
        )
    if place.is_chief:
        test(options)


def learning_rate(step: Any, options: DlrmOptions) -> Any:
    """The rate of a step: in the second half it falls along a line to 0."""
    done = tf.cast(step, tf.float32) / options.max_steps
    return options.learning_rate * tf.clip_by_value(2 * (1 - done), 0.0, 1.0)


def test(options: DlrmOptions) -> None:
    """Prints the AUC of the newest checkpoint, and that of the known model."""
    evaluator = MetricsEvaluator(
        lambda batch: add_test_metrics(Clicks(*batch), options),
        lambda: batches(options, 0, count=TEST_BATCHES).get_next(),
        config=DeploymentConfig(clone_on_cpu=True),
    )
    with evaluator:
        found = evaluator.evaluate(options.train_dir)
    values = "  ".join(f"{name} {value:.4f}" for name, value in found.metrics.items())
    print(f"test at step {found.global_step}: {values} ({found.examples:,} examples)")


def run(options: DlrmOptions, argv: Sequence[str]) -> None:
    """Trains, with `--num_ps` by processes that this one starts with the same flags."""
    if not launched_again(os.environ, options, argv):
        run_task(options)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, DlrmOptions, lambda options: run(options, argv), __doc__)


if __name__ == "__main__":
    end_process(main(sys.argv))
