"""`check_task`: what a training command refuses before TensorFlow is imported."""

import dataclasses
from collections.abc import Mapping

from model_deploy import classification
from model_deploy.cluster import WORLD_FILE, Cluster, resolve
from model_deploy.commands import named_as
from model_deploy.image_training.train_options import TrainOptions


def in_cluster(
    options: TrainOptions, cluster: Cluster | None
) -> tuple[TrainOptions, dict[str, str]]:
    """Returns the options of a task, and the flags by which errors name them, see `named_as`.

    Args:
      options: the options as given.
      cluster: the cluster; None for a process on its own.
    """
    if cluster is not None:
        options = dataclasses.replace(
            options,
            task=cluster.task_id,
            task_id=None,
            job_name=None,
            worker_replicas=len(cluster.workers),
            num_ps_tasks=len(cluster.ps),
        )
    flags = {"num_replicas": "worker_replicas"}
    if options.worker_hosts:
        workers = {"num_replicas": "worker_hosts", "worker_replicas": "worker_hosts"}
        flags = {"num_ps_tasks": "ps_hosts", **workers}
    return options, flags


def check_task(options: TrainOptions, environ: Mapping[str, str]) -> None:
    """Refuses what `train_task` would refuse of a cluster and a deployment, without TensorFlow.

    What depends on the GPUs of this machine is left to `train_task`, and so are the clusters of
    SLURM, whose description TensorFlow reads, and elastic runs, whose workers the launcher knows.

    Args:
      options: the options.
      environ: the environment variables.

    Raises:
      ValueError: as `cluster.resolve` and `training.deployment_config`, with the names of flags.
    """
    if environ.get(WORLD_FILE) or "SLURM_STEP_NUM_TASKS" in environ:
        return
    cluster = resolve(
        options,
        environ,
        task=options.task,
        master=options.master,
        num_ps_tasks=options.num_ps_tasks,
    ).cluster
    if cluster is not None and (cluster.is_evaluator or cluster.job_name == "ps"):
        return
    options, flags = in_cluster(options, cluster)
    with named_as(**flags):
        # With as many GPUs as it takes: of one clone nothing is refused that more would not be.
        config = classification.deployment_config(options, options.num_clones or 1)
        if options.num_clones is not None or options.clone_on_cpu:
            classification.clone_batch_size(options, config.num_clones)
