"""Trains by `train_and_evaluate` as a task of a cluster; each worker takes its share of batches.

python -m tests.estimator.cluster_program FOLDER [WAY] [STEPS]
"""

import sys
import time

import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, estimator
from tests import modes
from tests.estimator import models

STEPS = 6
BATCH_SIZE = 8  # of all replicas together
# The style of the `train_op`, and settings of two replicas.
WAYS = {
    "synchronous": ("averaged", {"num_ps_tasks": 2, "replicas_to_aggregate": 2}),
    "asynchronous": ("clipped", {"num_ps_tasks": 1}),
    "two losses": ("of two losses", {"num_ps_tasks": 2, "replicas_to_aggregate": 2}),
    "all-reduce": ("clipped", {"all_reduce": True, "num_clones": 2}),
}


class Slowly(tf.train.SessionRunHook):
    """Steps that can be seen, and take a while."""

    def before_run(self, run_context):
        """Asks for the step."""
        del run_context
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        """Shows the step."""
        del run_context
        print(f"step {run_values.results}/", flush=True)
        time.sleep(0.2)


def main(folder, way="synchronous", steps=STEPS):
    """Trains to the last step."""
    modes.enter()
    style, settings = WAYS[way]
    config = DeploymentConfig(num_replicas=2, clone_on_cpu=True, **settings)
    run_config = models.run_config(
        train_distribute=config, experimental_max_worker_delay_secs=0, save_checkpoints_steps=3
    )
    # The accumulators of a ps add up the rows of a gradient, of which the norm would be another.
    params = {"rate": 0.1, "dense": True}
    model_fn = models.model_fn_of(models.STYLES[style])
    trained = estimator.Estimator(model_fn, folder, run_config, params)
    number = run_config.global_id_in_cluster or 0

    def input_fn():
        return models.input_fn(BATCH_SIZE // config.global_clones)().shard(2, number)

    hooks = [Slowly()] if int(steps) > STEPS else []
    estimator.train_and_evaluate(
        trained,
        estimator.TrainSpec(input_fn, max_steps=int(steps), hooks=hooks),
        estimator.EvalSpec(models.input_fn(4), steps=1),
    )
    print(f"{run_config.task_type} {run_config.task_id} has ended")


if __name__ == "__main__":
    main(*sys.argv[1:])
