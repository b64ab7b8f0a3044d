"""Options of sessions and servers for collective ops; whether NCCL or TensorFlow's rings sum."""

import copy
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import gpus
from model_deploy.config import DeploymentConfig


def session_config(config: DeploymentConfig, base: Any = None) -> Any:
    """Returns a `tf.ConfigProto` for servers and sessions of a deployment by all-reduce.

    Args:
      config: the deployment.
      base: a `tf.ConfigProto` to start from; it is not changed.
    """
    proto = tf.ConfigProto() if base is None else copy.deepcopy(base)
    set_up_session(config, proto)
    return proto


def set_up_session(config: DeploymentConfig, proto: Any) -> None:
    """Adds the options that servers and sessions need for all-reduce to `proto`.

    Servers and sessions both need it: a server takes the leader of the collective ops from its
    config, a session the devices.  Clones on the CPU get one logical device each; for clones on
    GPUs see `uses_nccl`.

    Args:
      config: the deployment.
      proto: a `tf.ConfigProto`.
    """
    if config.clone_on_cpu:
        proto.device_count["CPU"] = max(proto.device_count["CPU"], config.num_clones)
    if uses_nccl(config, proto):
        proto.experimental.collective_nccl = True
    if config.num_replicas > 1:
        job = f"/job:{config.worker_job_name}"
        proto.experimental.collective_group_leader = f"{job}/replica:0/task:0"
        # Without it a session would wait for all workers before it even starts.
        if not proto.device_filters:
            proto.device_filters.append(f"{job}/task:{config.replica_id}")


def uses_nccl(config: DeploymentConfig, proto: Any = None) -> bool:
    """Whether NCCL sums the values that clones exchange: only between GPUs of one process.

    Between processes, and between logical parts of one GPU, TensorFlow's own rings sum them.

    Args:
      config: the deployment.
      proto: a `tf.ConfigProto` that may divide GPUs into logical ones; by default they are whole.
    """
    alone = config.num_replicas == 1 and config.num_clones > 1 and not config.clone_on_cpu
    return alone and not (proto is not None and gpus.is_divided(proto))


def added_by(config: DeploymentConfig) -> str:
    """Returns in words what sums the clones' gradients, for the banner."""
    if uses_nccl(config):
        return "NCCL"
    if config.num_replicas > 1:
        return "rings between processes"
    return "a ring in the memory of the CPU" if config.num_clones > 1 else "nothing: one clone"
