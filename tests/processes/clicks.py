"""A program that trains in a cluster with metrics and patience; its data follow from the step.

python -m tests.processes.clicks --mode=synchronous --train_dir=DIR [flags of the cluster]
"""

import dataclasses
import sys

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import cluster as cluster_lib
from model_deploy import deploy, training
from model_deploy.commands import option, run_command
from model_deploy.metrics import AUC, LogLoss, add_metric
from model_deploy.optimization import LearningRateOptions, build_learning_rate
from tests import modes
from tests.processes.training import worker_of

MODES = ("asynchronous", "synchronous", "all_reduce")
WORKERS, BATCH, MOST_STEPS, BEST_STEP = 2, 16, 200, 6
# It is shown, and falls after each evaluation without improvement; the optimizer's is 0.
RATE = LearningRateOptions(
    learning_rate=1.0,
    learning_rate_decay_type="plateau",
    learning_rate_decay_factor=0.5,
    plateau_patience=1,
)
_RANDOM = np.random.RandomState(11)
# Log-odds are multiples of 1/8, whose order the bins keep: so the area is exact.
LOG_ODDS = np.round(_RANDOM.normal(size=[MOST_STEPS, WORKERS, BATCH]) * 8) / 8
LABELS = (_RANDOM.uniform(size=LOG_ODDS.shape) < 1 / (1 + np.exp(-LOG_ODDS))).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class Options(cluster_lib.ClusterOptions, training.LoopOptions):
    """The settings of a cluster and of the loop, and how it trains."""

    mode: str = option("asynchronous", "how replicas train together", choices=MODES)
    train_dir: str = option("", "folder for checkpoints")


class LastRate(tf.train.SessionRunHook):
    """Keeps the learning rate of the last step."""

    def after_run(self, run_context, run_values):
        self.rate = run_context.report.learning_rate


def evaluate(checkpoint):
    """An area that rises up to a step, and falls from there on."""
    step = int(checkpoint.rpartition("-")[2])
    return {"auc": 0.9 - 0.01 * abs(step - BEST_STEP)}


def build(options, config):
    """The model of one worker, whose weight of 1 is trained at rate 0."""
    with tf.device(config.variables_device()):
        step = tf.train.get_or_create_global_step()

    def model_fn():
        at = tf.cast(step.read_value(), tf.int32), config.replica_id
        log_odds, labels = (tf.constant(each, tf.float32)[at] for each in (LOG_ODDS, LABELS))
        weight = tf.get_variable("weight", [], initializer=tf.ones_initializer())
        tf.losses.sigmoid_cross_entropy(labels, log_odds * weight)
        add_metric(AUC(), labels, tf.sigmoid(log_odds * weight))
        add_metric(LogLoss(), labels, tf.sigmoid(log_odds * weight))

    count = config.num_replicas if options.mode == "synchronous" else None
    optimizer = tf.train.GradientDescentOptimizer(0.0)
    return deploy(config, model_fn, optimizer=optimizer, replicas_to_aggregate=count)


def main(options):
    """Runs this process's task to its end."""
    worker = worker_of(options)
    if worker is None:
        return
    cluster, config = worker
    model, last = build(options, config), LastRate()
    result = training.train(
        model,
        options.train_dir,
        max_steps=MOST_STEPS,
        evaluate=evaluate if cluster.is_chief else None,
        metric="auc",
        learning_rate=build_learning_rate(RATE, tf.train.get_global_step(), 1),
        hooks=[last],
        start_timeout=options.start_timeout,
        cluster=cluster,
        **options.part(training.LoopOptions),
    )
    print(f"ended at step {result.global_step}", flush=True)
    print(f"last rate {getattr(last, 'rate', None)}", flush=True)


if __name__ == "__main__":
    modes.enter()
    tf.get_logger().setLevel("ERROR")
    cluster_lib.end_process(run_command(sys.argv, Options, main, __doc__))
