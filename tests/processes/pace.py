"""A program that trains in a cluster, in which a task's input can be made slow while it runs.

python -m tests.processes.pace --mode=synchronous --train_dir=DIR [flags of the cluster]
"""

import dataclasses
import random
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import deploy, training
from model_deploy.commands import option, run_command
from tests import modes
from tests.processes.training import worker_of

MODES = ("asynchronous", "synchronous", "all_reduce")


@dataclasses.dataclass(frozen=True)
class PaceOptions(cluster_lib.ClusterOptions, training.LoopOptions):
    """The settings of a cluster and of the loop, and what a step has to do."""

    log_every_n_steps: int = option(1, "steps between lines", minimum=1)
    mode: str = option("synchronous", "how replicas train together", choices=MODES)
    train_dir: str = option("", "folder of the run")
    max_number_of_steps: int = option(100_000, "the target", minimum=1)
    input_secs: float = option(0.1, "seconds until a batch is there", minimum=0)
    slow_input_secs: float = option(0.3, "the same, while there is a file `slow-<task>`", minimum=0)
    input_jitter: float = option(0.0, "share by which these differ at random", minimum=0)
    products: int = option(1, "products of matrices in a step", minimum=1)
    size: int = option(64, "rows and columns of each matrix", minimum=1)


def _batches(options, task):
    """Batches that take their time."""
    slow = Path(options.train_dir).parent / f"slow-{task}"
    row = np.full([options.size], 0.5, np.float32)

    def load(_):
        secs = options.slow_input_secs if slow.exists() else options.input_secs
        time.sleep(secs * (1 + options.input_jitter * random.uniform(-1, 1)))
        return row

    numbers = tf.data.Dataset.range(1 << 40)
    return numbers.map(lambda number: tf.numpy_function(load, [number], tf.float32))


def _model(iterator, options):
    weights = tf.get_variable(
        "weights", [options.size, options.size], initializer=tf.zeros_initializer()
    )
    batch = tf.reshape(iterator.get_next(), [1, options.size])
    product = weights + tf.eye(options.size)
    for _ in range(options.products - 1):
        product = tf.matmul(weights, product)
    tf.losses.add_loss(tf.reduce_mean(tf.square(tf.matmul(batch, product) - 1.0)))


def main(options):
    """Runs this process's task to its end."""
    worker = worker_of(options)
    if worker is None:
        return
    cluster, config = worker
    with tf.device(config.inputs_device()):
        batches = _batches(options, cluster.task_id)
        iterator = tf.data.make_initializable_iterator(batches)
        tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    model = deploy(
        config,
        _model,
        [iterator, options],
        optimizer=tf.train.GradientDescentOptimizer(0.001),
        replicas_to_aggregate=config.num_replicas if options.mode == "synchronous" else None,
    )
    training.train(
        model,
        options.train_dir,
        max_steps=options.max_number_of_steps,
        start_timeout=options.start_timeout,
        cluster=cluster,
        **options.part(training.LoopOptions),
    )


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    cluster_lib.end_process(run_command(sys.argv, PaceOptions, main, __doc__))
