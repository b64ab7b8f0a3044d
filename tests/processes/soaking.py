"""The program of the soak: a tiny model with most features, which trains as long as it is let.

python -m tests.processes.soaking --train_dir=DIR --until=FILE [flags of the cluster]

With parameter servers, a table that grows and drops its rows; in an elastic run, dense layers with
dropout and a batch norm.  The run ends at a step after the file FILE is made.
"""

import dataclasses
import os
import sys
from pathlib import Path

import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, elastic, embeddings, metrics, slim, training
from model_deploy.cluster import WORLD_FILE, ClusterOptions, end_process
from model_deploy.commands import option, run_command
from model_deploy.image_training.evaluating import evaluations
from model_deploy.randomness import random_by_step
from tests import modes

BATCH, IDS_PER_STEP, MAX_ROWS, WIDTH, TEST_BATCHES = 8, 4, 2000, 4, 4
_POLL_SECS = 0.2
# Far more steps than a soak makes: the file says when it ends.
_NEVER = 10**9
# Steps between looks at the file, and looks between lines about the graph.
_STEPS_PER_LOOK, _LOOKS_PER_LINE = 50, 100


@dataclasses.dataclass(frozen=True)
class SoakOptions(ClusterOptions, training.LoopOptions):
    """The settings of a cluster and of the loop, and what ends the run."""

    train_dir: str = option("", "folder for checkpoints")
    until: str = option("", "file that ends the run")


class Until(tf.train.SessionRunHook):
    """Ends the run once there is a file; now and then prints how many ops the graph has."""

    def __init__(self, path):
        self._path, self._looks = Path(path), 0

    def due(self, step):
        """Takes part in one of so many steps."""
        return step % _STEPS_PER_LOOK == 0

    def after_run(self, run_context, run_values):
        if self._looks % _LOOKS_PER_LINE == 0:
            ops = run_context.session.graph.get_operations()
            print(f"\ngraph of {len(ops)} ops", flush=True)
        self._looks += 1
        if self._path.exists():
            run_context.request_stop()


def batches(first, stride=1, count=-1):
    """An iterator of ids, int64 [BATCH], some of which are new in each step, and numbers."""

    def make(number):
        seed = tf.stack([number, 0])
        ago = tf.random.stateless_uniform([BATCH], seed, 0, 4 * MAX_ROWS, dtype=tf.int64)
        newest = IDS_PER_STEP * number + 4 * MAX_ROWS
        return newest - ago, tf.random.stateless_normal([BATCH, WIDTH], seed)

    numbers = tf.data.Dataset.range(first, tf.int64.max, stride).take(count)
    iterator = tf.data.make_initializable_iterator(numbers.map(make).prefetch(2))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator


def add_clicks(batch, is_training=True):
    """The `model_fn` with a table that grows; whether there is a click follows from numbers."""
    ids, numbers = batch
    table = embeddings.GrowingTable(name="ids", width=WIDTH, max_rows=MAX_ROWS)
    rows = embeddings.look_up(table, ids, is_training=is_training)
    net = slim.fully_connected(tf.concat([rows, numbers], 1), 8, scope="hidden")
    net = slim.dropout(net, is_training=is_training)
    logits = slim.fully_connected(net, 1, activation_fn=None, scope="top")[:, 0]
    labels = tf.cast(tf.reduce_sum(numbers, 1) > 0, tf.float32)
    tf.losses.sigmoid_cross_entropy(labels, logits)
    metrics.add_metric(metrics.AUC(), labels, tf.sigmoid(logits))
    tf.summary.histogram("logits", logits)


def add_dense(numbers):
    """The `model_fn` of the elastic run."""
    net = slim.fully_connected(numbers, 8, normalizer_fn=slim.batch_norm)
    net = slim.fully_connected(slim.dropout(net), 1, activation_fn=None)
    tf.losses.mean_squared_error(tf.reduce_sum(numbers, 1, keepdims=True), net)


def evaluator():
    """Evaluates a checkpoint on the first batches."""
    return training.MetricsEvaluator(
        lambda batch: add_clicks(batch, is_training=False),
        lambda: batches(0, count=TEST_BATCHES).get_next(),
        config=DeploymentConfig(num_clones=2, clone_on_cpu=True),
    )


def run_servers(options):
    """Is a task of a cluster with parameter servers, or the evaluator beside it."""
    place = training.join_cluster(os.environ, options)  # a parameter server stays in there
    if place.is_evaluator:
        with evaluator() as own:
            for found in evaluations(own, training.CheckpointWatch(options.train_dir, _POLL_SECS)):
                print(f"evaluated at step {found.global_step}: {found.scores}", flush=True)
        return
    config = place.deployment(DeploymentConfig(num_clones=2, clone_on_cpu=True, copy_clones=True))
    config = dataclasses.replace(config, wire_precision="bfloat16")
    with tf.Graph().as_default(), evaluator() as found:
        tf.set_random_seed(1)
        with tf.device(config.inputs_device()):
            own = batches(TEST_BATCHES + config.replica_id, config.num_replicas)
        with tf.device(config.variables_device()):
            tf.train.get_or_create_global_step()
        model = deploy(
            config,
            lambda iterator: add_clicks(iterator.get_next()),
            [own],
            optimizer=training.RowAdamOptimizer(0.001),
            summarize_gradients=True,
        )
        training.train(
            model,
            options.train_dir,
            max_steps=_NEVER,
            hooks=[Until(options.until)],
            evaluate=lambda checkpoint: found.evaluate(checkpoint).scores,
            metric="auc",
            place=place,
            **options.part(training.LoopOptions),
        )


def run_elastic(options):
    """Is a worker of an elastic run."""

    def build(config):
        step = tf.train.get_or_create_global_step()

        def model_fn():
            seed = tf.stack([tf.cast(step.read_value(), tf.int64), 0])
            add_dense(tf.random.stateless_normal([BATCH, WIDTH], seed))

        optimizer = tf.train.AdamOptimizer(0.001)
        model = deploy(config, random_by_step(model_fn), optimizer=optimizer)
        return elastic.ElasticModel(model, {"hooks": [Until(options.until)]})

    elastic.train_elastic(
        build,
        DeploymentConfig(num_clones=2, clone_on_cpu=True, precision="bfloat16"),
        options.train_dir,
        max_steps=_NEVER,
        **options.part(training.LoopOptions),
    )


def main(options):
    """Trains until the file is there."""
    (run_elastic if os.environ.get(WORLD_FILE) else run_servers)(options)


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    end_process(run_command(sys.argv, SoakOptions, main, __doc__))
