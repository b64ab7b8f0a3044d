"""Trains a table that grows, and drops rows, in a cluster; its ids follow from the step.

python -m tests.embeddings.cluster_training [flags as of tests.processes.training]
"""

import sys

import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import deploy, embeddings
from model_deploy.commands import run_command
from tests import modes
from tests.processes import training

TABLE = embeddings.GrowingTable(name="items", width=2, max_rows=20, new_per_step=8)


def model_of(replica_id):
    """The `model_fn` of one worker, whose three ids of a step move on by one in each step."""

    def model_fn():
        number = tf.cast(tf.train.get_or_create_global_step().read_value(), tf.int64)
        ids = number + 3 * replica_id + tf.range(3, dtype=tf.int64)
        rows = embeddings.look_up(TABLE, ids)
        wanted = tf.sin(tf.cast(ids, tf.float32))[:, tf.newaxis]
        tf.losses.mean_squared_error(tf.tile(wanted, [1, 2]), rows)

    return model_fn


def optimizer_of(learning_rate=training.RATE):
    """What trains it."""
    return tf.train.MomentumOptimizer(learning_rate, 0.9)


def build(mode, config, learning_rate):
    """The model of one worker, deployed."""
    count = config.num_replicas if mode == "synchronous" else None
    model_fn, optimizer = model_of(config.replica_id), optimizer_of(learning_rate)
    return deploy(config, model_fn, optimizer=optimizer, replicas_to_aggregate=count)


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    end = run_command(
        sys.argv, training.TrainingOptions, lambda o: training.main(o, build), __doc__
    )
    cluster_lib.end_process(end)
