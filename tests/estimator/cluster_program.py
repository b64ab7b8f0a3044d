"""Trains by `train_and_evaluate` as a task of a cluster; each worker takes its share of batches."""

import sys

from model_deploy import DeploymentConfig, estimator
from tests import modes
from tests.estimator import models

STEPS = 6


def main(folder):
    """Synchronous replicas of one clone each; the step is that of both batches together."""
    modes.enter()
    config = DeploymentConfig(
        clone_on_cpu=True, num_replicas=2, num_ps_tasks=1, replicas_to_aggregate=2
    )
    run_config = models.run_config(
        train_distribute=config, experimental_max_worker_delay_secs=0, save_checkpoints_steps=3
    )
    # The accumulators of a ps add up the rows of a gradient, of which the norm would be another.
    params = {"rate": 0.1, "dense": True}
    model_fn = models.model_fn_of(models.STYLES["clipped"])
    trained = estimator.Estimator(model_fn, folder, run_config, params)
    number = run_config.global_id_in_cluster or 0

    def input_fn():
        return models.input_fn(4)().shard(2, number)

    estimator.train_and_evaluate(
        trained,
        estimator.TrainSpec(input_fn, max_steps=STEPS),
        estimator.EvalSpec(models.input_fn(4), steps=1),
    )
    print(f"{run_config.task_type} {run_config.task_id} has ended")


if __name__ == "__main__":
    main(sys.argv[1])
