"""What is wrong with a `DeploymentConfig`."""

import re
from typing import Any

from model_deploy import placement
from model_deploy.checks import check_whole
from model_deploy.gpus import check_settings
from model_deploy.loss_scale import check_loss_scale
from model_deploy.precision import check_precision

# TensorFlow's own rule for job names, see `DeviceSpec.from_string`.
_JOB_NAME = re.compile(r"[a-zA-Z][\w]*", re.ASCII)

# How float32 values may cross process borders.
WIRE_PRECISIONS = ("float32", "bfloat16")


def check_config(config: Any) -> None:
    """Checks the fields of a `DeploymentConfig`, each by itself and with the others.

    Raises:
      ValueError: for a value that breaks a rule, naming the field, the rule and the value.
    """
    check_whole("num_clones", config.num_clones, 1)
    check_whole("devices_per_clone", config.devices_per_clone, 1)
    check_whole("accumulate_steps", config.accumulate_steps, 1)
    for field in ("clone_on_cpu", "all_reduce", "copy_clones", "sync_batch_norm", "xla"):
        value = getattr(config, field)
        if not isinstance(value, bool):
            raise ValueError(f"{field} must be True or False, got {value!r}")
    check_whole("replica_id", config.replica_id, 0)
    check_whole("num_replicas", config.num_replicas, 1)
    check_whole("num_ps_tasks", config.num_ps_tasks, 0)
    if config.worker_task is not None:
        check_whole("worker_task", config.worker_task, 0)
    if config.replica_id >= config.num_replicas:
        raise ValueError(
            f"replica_id must be less than num_replicas={config.num_replicas}, "
            f"got {config.replica_id}"
        )
    _check_all_reduce(config)
    _check_copies(config)
    _check_parts(config)
    _check_names(config)
    _check_wire(config)
    check_settings(config)
    _check_aggregation(config)
    check_precision(config.precision)
    check_loss_scale(config.loss_scale)


def _check_all_reduce(config: Any) -> None:
    if config.all_reduce and config.num_ps_tasks > 0:
        raise ValueError(f"num_ps_tasks must be 0 with all_reduce=True, got {config.num_ps_tasks}")
    if config.num_replicas > 1 and config.num_ps_tasks < 1 and not config.all_reduce:
        raise ValueError(
            f"num_ps_tasks must be at least 1 with num_replicas={config.num_replicas}, "
            f"got {config.num_ps_tasks}; or set all_reduce=True"
        )


def _check_parts(config: Any) -> None:
    check_whole("first_part", config.first_part, 0)
    if config.global_parts is None:
        if config.first_part:
            raise ValueError(f"first_part must be 0 without global_parts, got {config.first_part}")
        return
    check_whole("global_parts", config.global_parts, 1)
    if not config.all_reduce and config.num_ps_tasks == 0:
        raise ValueError(
            "global_parts must be None without all_reduce=True and without num_ps_tasks, got "
            f"{config.global_parts}"
        )
    if config.copy_clones:
        raise ValueError("copy_clones must be False with global_parts, got True")
    if config.sync_batch_norm:
        # Its moments would be those of other parts after each change of the replicas.
        raise ValueError("sync_batch_norm must be False with global_parts, got True")
    least = max(config.num_replicas, config.first_part + config.accumulate_steps)
    if config.global_parts < least:
        raise ValueError(
            f"global_parts must be at least num_replicas={config.num_replicas} and first_part + "
            f"accumulate_steps = {config.first_part} + {config.accumulate_steps}, "
            f"got {config.global_parts}"
        )


def _check_aggregation(config: Any) -> None:
    if config.all_reduce and config.aggregate_on not in (None, "all_reduce"):
        raise ValueError(
            f"aggregate_on must be all_reduce with all_reduce=True, got {config.aggregate_on!r}"
        )
    if config.aggregate_on == "gpu" and config.clone_on_cpu:
        raise ValueError("aggregate_on must be cpu or all_reduce with clone_on_cpu=True, got 'gpu'")


def _check_copies(config: Any) -> None:
    """All-reduce makes variables in each call of `model_fn`, on the clone's one device."""
    if config.all_reduce and config.copy_clones:
        raise ValueError("copy_clones must be False with all_reduce=True, got True")
    if config.all_reduce and config.devices_per_clone > 1:
        raise ValueError(
            f"devices_per_clone must be 1 with all_reduce=True, got {config.devices_per_clone}"
        )


def _check_names(config: Any) -> None:
    for field in ("worker_job_name", "ps_job_name"):
        name = getattr(config, field)
        if not isinstance(name, str) or not _JOB_NAME.fullmatch(name):
            raise ValueError(
                f"{field} must be a letter followed by letters, digits and _, got {name!r}"
            )
    if config.worker_job_name == config.ps_job_name:
        raise ValueError(
            f"ps_job_name must differ from worker_job_name, got {config.ps_job_name!r}"
        )
    if config.ps_strategy not in placement.PS_STRATEGIES:
        raise ValueError(
            f"ps_strategy must be one of {', '.join(placement.PS_STRATEGIES)}, "
            f"got {config.ps_strategy!r}"
        )


def _check_wire(config: Any) -> None:
    if config.wire_precision not in WIRE_PRECISIONS:
        raise ValueError(
            f"wire_precision must be one of {', '.join(WIRE_PRECISIONS)}, "
            f"got {config.wire_precision!r}"
        )
    if config.wire_precision != "float32" and config.num_replicas == 1 and config.num_ps_tasks == 0:
        raise ValueError(
            "wire_precision must be 'float32' with num_replicas=1 and num_ps_tasks=0, where "
            f"nothing crosses a process border, got {config.wire_precision!r}"
        )
