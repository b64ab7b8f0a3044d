"""Wide and deep: who earns more than 50,000 a year, by crossed columns and by a network.

    python examples/wide_and_deep.py --train_dir=wide_and_deep_run

The model is that of Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016
(https://arxiv.org/abs/1606.07792).  The wide part has a weight for each value and for each cross of
values that it has seen: all are rows of one table of width 1, under their texts.  The deep part has
embeddings, and a network above them.  The log-odds of both are added.  FTRL with L1 trains the wide
part and AdaGrad the deep one, as in the paper.

The people are made here, like those of a census, from a known model: at the end the AUC on people
that no step has seen stands beside the best possible one.  `--num_ps=2` starts two parameter
servers and two workers, processes on this machine.
"""

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import numpy as np
    import tensorflow.compat.v1 as tf

    from model_deploy import DeploymentConfig, deploy, embeddings, metrics, train, training
    from model_deploy.cluster import ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command
    from model_deploy.launch import launched_again
    from model_deploy.training import MetricsEvaluator

COLUMNS = {
    "education": (
        *("Bachelors", "HS-grad", "11th", "Masters", "9th", "Some-college", "Assoc-acdm"),
        *("Assoc-voc", "7th-8th", "Doctorate", "Prof-school", "5th-6th", "10th", "12th"),
    ),
    "occupation": (
        *("Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial"),
        *("Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical"),
        *("Farming-fishing", "Transport-moving", "Protective-serv"),
    ),
    "workclass": ("Private", "Self-emp", "Federal-gov", "Local-gov", "State-gov", "Without-pay"),
}
CROSSES = (("education", "occupation"), ("occupation", "workclass"))
TEST_BATCHES = 32
WIDE = "wide/"  # how names of variables of the wide part begin


@dataclasses.dataclass(frozen=True)
class WideAndDeepOptions(ClusterOptions, training.LoopOptions):
    """The settings of a run, beside those of the cluster and the loop; each is a flag."""

    train_dir: str = option("wide_and_deep_run", "folder for checkpoints and events")
    num_clones: int = option(1, "clones, each with batches of its own", minimum=1)
    num_ps: int = option(0, "start so many parameter servers, and workers", minimum=0)
    num_workers: int = option(2, "workers to start with --num_ps", minimum=1)
    batch_size: int = option(1024, "people per clone and step", minimum=1)
    max_steps: int = option(2000, "number of the last step", minimum=1)
    wide_rate: float = option(1.0, "learning rate of FTRL", above=0)
    l1: float = option(0.0001, "L1 regularization of the wide part", minimum=0)
    deep_rate: float = option(0.1, "learning rate of AdaGrad", above=0)
    width: int = option(8, "values in an embedding", minimum=1)
    seed: int = option(1, "number that people and initial values follow from", minimum=0)
    log_every_n_steps: int = option(100, "steps from one line to the next", minimum=1)


class KnownModel:
    """Makes people: log-odds are a sum over values, crosses of values, age and hours of work."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        rng = np.random.default_rng(seed)
        sizes = {name: len(values) for name, values in COLUMNS.items()}
        self._effects = {name: rng.normal(0, 0.6, size) for name, size in sizes.items()}
        self._crosses = {
            (one, other): rng.normal(0, 0.8, (sizes[one], sizes[other])) for one, other in CROSSES
        }

    def batch(self, number: int, size: int) -> dict[str, np.ndarray]:
        """Returns the batch with a number, which follows from that number and the seed.

        Returns:
          By name strings [size], and float32 [size]: `age` and `hours` from 0 to 1, `label`, which
          is 1 for more than 50,000, and `score`, the log-odds from which labels were drawn.
        """
        rng = np.random.default_rng([self._seed, number])
        places = {name: rng.integers(len(values), size=size) for name, values in COLUMNS.items()}
        age, hours = rng.random((2, size))
        # The middle-aged earn most, and long hours count for them.
        score = 2 - 12 * (age - 0.6) ** 2 + 2 * (hours - 0.5) * (1 - age) - 1.5
        score += sum(self._effects[name][place] for name, place in places.items())
        score += sum(table[places[a], places[b]] for (a, b), table in self._crosses.items())
        label = rng.random(size) < 1 / (1 + np.exp(-score))
        numbers = {"age": age, "hours": hours, "label": label, "score": score}
        texts = {name: np.array(COLUMNS[name], "S")[place] for name, place in places.items()}
        return {**texts, **{name: each.astype(np.float32) for name, each in numbers.items()}}


def batches(
    options: WideAndDeepOptions, first: int, stride: int = 1, count: int | None = None
) -> Any:
    """Returns an iterator of the batches `first`, `first + stride`, ...; of all, or so many."""
    known = KnownModel(options.seed)
    like = known.batch(0, 1)
    types = [tf.as_dtype(array.dtype) for array in like.values()]

    def make(number: Any) -> dict[str, Any]:
        made = tf.numpy_function(
            lambda n: [*known.batch(n, options.batch_size).values()], [number], types
        )
        shape = [options.batch_size]
        return {name: tf.ensure_shape(each, shape) for name, each in zip(like, made, strict=True)}

    numbers = tf.data.Dataset.range(first, np.iinfo(np.int64).max, stride)
    data = numbers.take(-1 if count is None else count).map(make).prefetch(2)
    return tf.data.make_one_shot_iterator(data)


def wide_logits(people: dict[str, Any], *, is_training: bool) -> Any:
    """A sum of weights, float32 [n], of values and their crosses."""
    texts = [tf.strings.join([f"{name}=", people[name]]) for name in COLUMNS]
    texts += [
        tf.strings.join([f"{one}x{other}=", people[one], "&", people[other]])
        for one, other in CROSSES
    ]
    table = embeddings.GrowingTable(
        name=f"{WIDE}weights", width=1, max_rows=10_000, initial=embeddings.Constant(0.0)
    )
    ids = tf.stack(texts, 1)
    return embeddings.look_up(table, ids, combiner="sum", is_training=is_training)[:, 0]


def deep_logits(people: dict[str, Any], width: int, *, is_training: bool) -> Any:
    """A network's logits, float32 [n], of embeddings and numbers."""
    parts = [people["age"][:, tf.newaxis], people["hours"][:, tf.newaxis]]
    for name in COLUMNS:
        table = embeddings.GrowingTable(name=f"deep/{name}", width=width, max_rows=1000)
        parts.append(embeddings.look_up(table, people[name], is_training=is_training))
    net = tf.concat(parts, 1)
    for i, units in enumerate((64, 32, 1)):
        net = tf.nn.relu(net) if i else net
        shape = [net.shape[1], units]
        start = tf.glorot_uniform_initializer()
        weights = tf.get_variable(f"deep/layer{i}/weights", shape, initializer=start)
        zeros = tf.zeros_initializer()
        biases = tf.get_variable(f"deep/layer{i}/biases", [units], initializer=zeros)
        net = tf.nn.bias_add(tf.matmul(net, weights), biases)
    return net[:, 0]


def logits_of(people: dict[str, Any], options: WideAndDeepOptions, *, is_training: bool) -> Any:
    """Log-odds of more than 50,000, float32 [n]."""
    deep = deep_logits(people, options.width, is_training=is_training)
    return wide_logits(people, is_training=is_training) + deep


class WideAndDeepOptimizer(tf.train.Optimizer):
    """Two optimizers: one of variables of the wide part, one of all others."""

    def __init__(self, wide: Any, deep: Any) -> None:
        super().__init__(use_locking=False, name="WideAndDeep")
        self._wide, self._deep = wide, deep

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: Any = None
    ) -> Any:
        """Returns the op that makes both updates, and then counts the step."""
        parts: tuple[list[Any], list[Any]] = ([], [])
        for gradient, variable in grads_and_vars:
            parts[variable.op.name.startswith(WIDE)].append((gradient, variable))
        with tf.control_dependencies([self._wide.apply_gradients(parts[True])]):
            return self._deep.apply_gradients(parts[False], global_step, name)


def add_loss(people: Any, options: WideAndDeepOptions) -> None:
    """The `model_fn` of training: takes the next batch for each clone."""
    batch = people.get_next()
    logits = logits_of(batch, options, is_training=True)
    tf.losses.sigmoid_cross_entropy(batch["label"], logits)
    metrics.add_metric(metrics.AUC(), batch["label"], tf.sigmoid(logits))


def add_test_metrics(batch: dict[str, Any], options: WideAndDeepOptions) -> None:
    """The `model_fn` of the test."""
    logits = logits_of(batch, options, is_training=False)
    metrics.add_metric(metrics.AUC(), batch["label"], logits)
    metrics.add_metric(metrics.AUC("best possible auc"), batch["label"], batch["score"])


def run_task(options: WideAndDeepOptions) -> None:
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
        optimizer = WideAndDeepOptimizer(
            tf.train.FtrlOptimizer(options.wide_rate, l1_regularization_strength=options.l1),
            tf.train.AdagradOptimizer(options.deep_rate),
        )
        train(
            deploy(config, add_loss, [own, options], optimizer=optimizer),
            options.train_dir,
            max_steps=options.max_steps,
            images_per_step=options.batch_size * options.num_clones,
            unit="people",
            place=place,
            **options.part(training.LoopOptions),
        )
    if place.is_chief:
        test(options)


def test(options: WideAndDeepOptions) -> None:
    """Prints the AUC of the newest checkpoint, and that of the known model."""
    evaluator = MetricsEvaluator(
        lambda batch: add_test_metrics(batch, options),
        lambda: batches(options, 0, count=TEST_BATCHES).get_next(),
        config=DeploymentConfig(clone_on_cpu=True),
    )
    with evaluator:
        found = evaluator.evaluate(options.train_dir)
    values = "  ".join(f"{name} {value:.4f}" for name, value in found.metrics.items())
    print(f"test at step {found.global_step}: {values} ({found.examples:,} people)")


def run(options: WideAndDeepOptions, argv: Sequence[str]) -> None:
    """Trains, with `--num_ps` by processes that this one starts with the same flags."""
    if not launched_again(os.environ, options, argv):
        run_task(options)


def main(argv: Sequence[str]) -> int:
    """Runs the command; returns its exit code."""
    return run_command(argv, WideAndDeepOptions, lambda options: run(options, argv), __doc__)


if __name__ == "__main__":
    end_process(main(sys.argv))
