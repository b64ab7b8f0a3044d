"""Checks of a `DeploymentConfig`: each field alone, and settings that exclude each other."""

import dataclasses
import numbers
import re
from typing import Any

from model_deploy.checks import check_bool, check_whole

# TensorFlow's own rule for job names, see `DeviceSpec.from_string`.
_JOB_NAME = re.compile(r"[a-zA-Z][\w]*", re.ASCII)


def check_config(config: Any) -> None:
    """Checks each field of a `DeploymentConfig`, alone and in combination with the others.

    Raises:
      ValueError: for an invalid value, naming the field, the rule and the value.
    """
    check_whole("num_clones", config.num_clones, 1)
    check_bool("clone_on_cpu", config.clone_on_cpu)
    check_whole("replica_id", config.replica_id, 0)
    check_whole("num_replicas", config.num_replicas, 1)
    check_whole("num_ps_tasks", config.num_ps_tasks, 0)
    if config.replica_id >= config.num_replicas:
        raise ValueError(
            f"replica_id must be less than num_replicas={config.num_replicas}, "
            f"got {config.replica_id}"
        )
    _check_names(config)
    config.check_way()
    config.check_clones()
    config.check_arithmetic()
    config.check_gpus()
    config.check_elastic()
    for check in (
        _check_all_reduce,
        _check_copies,
        _check_parts,
        _check_asynchronous,
        _check_replicas_to_aggregate,
        _check_rotation,
        _check_wire,
        _check_aggregation,
        _check_local_steps,
        _check_gradient_rank,
    ):
        check(config)


def _check_all_reduce(config: Any) -> None:
    if config.all_reduce and config.num_ps_tasks > 0:
        raise ValueError(f"num_ps_tasks must be 0 with all_reduce=True, got {config.num_ps_tasks}")
    if config.num_replicas > 1 and config.num_ps_tasks < 1 and not config.all_reduce:
        raise ValueError(
            f"num_ps_tasks must be at least 1 with num_replicas={config.num_replicas}, "
            f"got {config.num_ps_tasks}; or set all_reduce=True"
        )


def _check_parts(config: Any) -> None:
    if config.global_parts is None:
        return
    if not config.all_reduce and config.num_ps_tasks == 0:
        raise ValueError(
            "global_parts must be None without all_reduce=True and without num_ps_tasks, got "
            f"{config.global_parts}"
        )
    if config.copy_clones:
        raise ValueError("copy_clones must be False with global_parts, got True")
    if config.sync_batch_norm:
        # Moments would be over other groups of parts whenever the number of replicas changes.
        raise ValueError("sync_batch_norm must be False with global_parts, got True")
    least = max(config.num_replicas, config.first_part + config.accumulate_steps)
    if config.global_parts < least:
        raise ValueError(
            f"global_parts must be at least num_replicas={config.num_replicas} and first_part + "
            f"accumulate_steps = {config.first_part} + {config.accumulate_steps}, "
            f"got {config.global_parts}"
        )


def _check_asynchronous(config: Any) -> None:
    if not config.asynchronous:
        return
    if config.all_reduce:
        raise ValueError("asynchronous must be False with all_reduce=True, got True")
    if config.global_parts is not None:
        raise ValueError("asynchronous must be False with global_parts, got True")
    if config.sync_batch_norm and config.num_clones > 1:
        raise ValueError(
            "asynchronous must be False with sync_batch_norm=True and several clones, "
            f"got True with num_clones={config.num_clones}"
        )


def _check_replicas_to_aggregate(config: Any) -> None:
    wanted = config.replicas_to_aggregate
    if wanted is None:
        return
    if config.asynchronous or config.all_reduce:
        other = "asynchronous" if config.asynchronous else "all_reduce"
        raise ValueError(f"replicas_to_aggregate must be None with {other}=True, got {wanted}")
    is_whole = isinstance(wanted, numbers.Integral) and not isinstance(wanted, bool)
    if not is_whole or not 1 <= wanted <= config.num_replicas:
        raise ValueError(
            "replicas_to_aggregate must be an integer from 1 to "
            f"num_replicas={config.num_replicas}, got {wanted!r}"
        )
    if config.global_parts is not None and wanted != config.num_replicas:
        raise ValueError(
            f"replicas_to_aggregate must be num_replicas={config.num_replicas} with global_parts, "
            f"as each replica has parts of its own, got {wanted}"
        )


def _check_rotation(config: Any) -> None:
    """A step that is rotated is begun to be updated before all of it is known."""
    if not config.rotate_steps:
        return
    if not config.all_reduce:
        _check_rotation_on_servers(config)
    for exchange in ("local_steps", "gradient_rank"):
        if getattr(config, exchange) is not None:
            raise ValueError(
                f"rotate_steps must be False with {exchange}, which sends something else, got True"
            )
    for other, is_set in (
        ("global_parts", config.global_parts is not None),
        ("loss_scale", config.scales_losses_by is not None),
        ("sync_batch_norm", config.sync_batch_norm),
    ):
        if is_set:
            raise ValueError(
                f"rotate_steps must be False with {other}, which needs the whole step before any "
                "update, got True"
            )


def _check_rotation_on_servers(config: Any) -> None:
    wanted, replicas = config.replicas_to_aggregate, config.num_replicas
    if config.num_ps_tasks == 0 or (wanted is None and config.global_parts is None):
        raise ValueError(
            "rotate_steps must be False without all_reduce=True, or replicas_to_aggregate on "
            "parameter servers, got True"
        )
    if wanted is not None and wanted != replicas:
        raise ValueError(
            f"replicas_to_aggregate must be num_replicas={replicas} with rotate_steps=True, as "
            f"each variable is updated by itself, got {wanted}"
        )


def _check_aggregation(config: Any) -> None:
    if config.all_reduce and config.aggregate_on not in (None, "all_reduce"):
        raise ValueError(
            f"aggregate_on must be all_reduce with all_reduce=True, got {config.aggregate_on!r}"
        )
    if config.aggregate_on == "gpu" and config.clone_on_cpu:
        raise ValueError("aggregate_on must be cpu or all_reduce with clone_on_cpu=True, got 'gpu'")


def _check_local_steps(config: Any) -> None:
    if config.local_steps is None:
        defaults = {f.name: f.default for f in dataclasses.fields(config)}
        for name in ("outer_learning_rate", "outer_momentum", "outer_parts", "outer_overlap"):
            if getattr(config, name) != defaults[name]:
                raise ValueError(
                    f"{name} must be {defaults[name]} without local_steps, "
                    f"got {getattr(config, name)}"
                )
        return
    steps = config.local_steps
    if not config.all_reduce:
        raise ValueError(f"local_steps must be None without all_reduce=True, got {steps}")
    if config.scales_losses_by is not None:
        # A refused update would let the steps of replicas drift apart.
        raise ValueError(
            f"loss_scale must be None with local_steps={steps}, got {config.scales_losses_by!r}"
        )
    if config.outer_parts > steps:
        raise ValueError(
            f"outer_parts must be at most local_steps={steps}, got {config.outer_parts}"
        )
    if config.outer_overlap >= steps:
        raise ValueError(
            f"outer_overlap must be less than local_steps={steps}, got {config.outer_overlap}"
        )
    if config.global_parts is not None and config.outer_overlap < 1:
        # All that replicas exchange must arrive before the gate of a step.
        raise ValueError(
            f"outer_overlap must be at least 1 with global_parts, got {config.outer_overlap}"
        )


def _check_gradient_rank(config: Any) -> None:
    rank = config.gradient_rank
    if rank is None:
        return
    if not config.all_reduce:
        raise ValueError(f"gradient_rank must be None without all_reduce=True, got {rank}")
    if config.local_steps is not None:
        raise ValueError(
            f"gradient_rank must be None with local_steps={config.local_steps}, got {rank}"
        )


def _check_copies(config: Any) -> None:
    """With all-reduce each call of `model_fn` makes variables, on the one device of its clone."""
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


def _check_wire(config: Any) -> None:
    if config.wire_precision != "float32" and config.is_alone:
        raise ValueError(
            "wire_precision must be 'float32' with num_replicas=1 and num_ps_tasks=0, where "
            f"nothing crosses a process border, got {config.wire_precision!r}"
        )
