"""The deployment that options ask for, with defaults that depend on the machine's GPUs."""

import dataclasses

from model_deploy.classification.deployment_options import DEFAULT_BATCH_SIZE, DeploymentOptions
from model_deploy.commands import named_as
from model_deploy.config import DeploymentConfig

# Number of clones without a GPU, if none is given.
DEFAULT_CPU_CLONES = 2


def deployment_config(options: DeploymentOptions, num_gpus: int) -> DeploymentConfig:
    """Returns the deployment for the visible GPUs, or for the CPU if there are none.

    Raises:
      ValueError: if there are fewer GPUs than clones, or asynchronous clones are to synchronize
        batch norms; as `DeploymentConfig`, with the names of flags.
    """
    on_cpu = options.clone_on_cpu or num_gpus == 0
    num_clones = options.num_clones or (DEFAULT_CPU_CLONES if on_cpu else num_gpus)
    if not on_cpu and num_clones > num_gpus:
        raise ValueError(
            f"num_clones must be at most the number of visible GPUs, {num_gpus}, "
            f"got {num_clones}; --clone_on_cpu puts clones on the CPU"
        )
    if options.sync_batch_norm and options.asynchronous and num_clones > 1:
        raise ValueError(
            "sync_batch_norm must not be given together with asynchronous and several clones, "
            f"got num_clones={num_clones}"
        )
    names = {field.name for field in dataclasses.fields(DeploymentOptions)}
    names &= {field.name for field in dataclasses.fields(DeploymentConfig)}
    own = {
        "num_clones": num_clones,
        "clone_on_cpu": on_cpu,
        "replica_id": options.task,
        "num_replicas": options.worker_replicas,
        "replicas_to_aggregate": options.num_aggregated,
        "loss_scale": options.loss_scale_setting,
        # Neither all-reduce nor asynchronous clones can be copied: variables or batches are their
        # own.
        "copy_clones": options.copy_clones and not (options.all_reduce or options.asynchronous),
    }
    with named_as(replica_id="task", num_replicas="worker_replicas"):
        return DeploymentConfig(**{name: getattr(options, name) for name in names} | own)


def clone_batch_size(options: DeploymentOptions, num_clones: int) -> int:
    """Returns the images per batch of a clone, which takes `accumulate_steps` batches per step.

    Raises:
      ValueError: if the number of batches in a step does not divide the global batch size.
    """
    if options.global_batch_size is None:
        return options.batch_size or DEFAULT_BATCH_SIZE
    accumulated = ""
    if options.accumulate_steps > 1:
        accumulated = f" * accumulate_steps={options.accumulate_steps}"
    num_batches = num_clones * options.accumulate_steps
    if options.global_batch_size % num_batches:
        raise ValueError(
            f"global_batch_size must be a multiple of num_clones={num_clones}{accumulated}, "
            f"got {options.global_batch_size}"
        )
    return options.global_batch_size // num_batches
