"""`Job`: which process of how many this one is, and how it works, as its environment says."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from model_deploy.cluster import Cluster, ClusterOptions, resolve
from model_deploy.collectives import MOST_BYTES

# What `python -m model_deploy.launch` and the like say of a process: checked, not believed.
_PLACE = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
_LOG_LEVELS = ("trace", "debug", "info", "warning", "error", "fatal")
_HEEDED = {
    *_PLACE,
    *("FUSION_THRESHOLD", "LOG_LEVEL", "START_TIMEOUT"),
    *("STALL_CHECK_TIME_SECONDS", "STALL_CHECK_DISABLE"),
}
_PREFIX = "HOROVOD_"


@dataclasses.dataclass(frozen=True)
class Job:
    """The place of a process among those of a job, and the settings of the job.

    Attributes:
      cluster: the processes; None for one on its own.
      rank: index of this process.
      size: number of processes.
      local_rank: index among the processes of this machine.
      local_size: number of processes of this machine.
      cross_rank: index of this machine among those that have a process of this `local_rank`.
      cross_size: number of such machines.
      pack_bytes: up to this size small tensors travel together.
      start_timeout: seconds to wait for the other processes at the start.
      stall_secs: seconds after which a step that waits is reported.
      log_level: one of Horovod's names; None where it is not given.
      unheeded: variables that are set and mean nothing here.
    """

    cluster: Cluster | None = None
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    cross_rank: int = 0
    cross_size: int = 1
    pack_bytes: int = MOST_BYTES
    start_timeout: float = 300.0
    stall_secs: float = 60.0
    log_level: str | None = None
    unheeded: tuple[str, ...] = ()


def job_of(environ: Mapping[str, str]) -> Job:
    """The job of which this process is one, by `TF_CONFIG` or SLURM, and `HOROVOD_*`.

    >>> job_of({"HOROVOD_FUSION_THRESHOLD": "1048576"}).pack_bytes
    1048576

    Args:
      environ: the environment variables.

    Raises:
      ValueError: naming variable, rule and value: if the cluster has parameter servers, if the
        `HOROVOD_*` variables say another place than the cluster or there is no cluster for theirs,
        if a number is none.
    """
    cluster, _ = resolve(ClusterOptions(), environ)
    if cluster is not None and cluster.ps_hosts:
        raise ValueError(
            f"the cluster must have workers only for Horovod, got {len(cluster.ps_hosts)} "
            "parameter servers"
        )
    place = {} if cluster is None else _place(cluster)
    for name in _PLACE:
        _check_place(environ, name, place.get(name.lower(), int("SIZE" in name)))
    level = environ.get("HOROVOD_LOG_LEVEL", "").lower() or None
    if level not in (None, *_LOG_LEVELS):
        raise ValueError(
            f"HOROVOD_LOG_LEVEL must be one of {', '.join(_LOG_LEVELS)}, got {level!r}"
        )
    named = {name.removeprefix(_PREFIX) for name in environ if name.startswith(_PREFIX)}
    quiet = _number(environ, "STALL_CHECK_DISABLE", 0, int)
    return Job(
        cluster=cluster,
        **place,
        pack_bytes=_number(environ, "FUSION_THRESHOLD", MOST_BYTES, int),
        start_timeout=_number(environ, "START_TIMEOUT", Job.start_timeout, float),
        stall_secs=math.inf
        if quiet
        else _number(environ, "STALL_CHECK_TIME_SECONDS", Job.stall_secs, float),
        log_level=level,
        unheeded=tuple(f"{_PREFIX}{name}" for name in sorted(named - _HEEDED)),
    )


def _place(cluster: Cluster) -> dict[str, int]:
    """The place of a process, as fields of `Job`; machines are told apart by their addresses."""
    hosts = [task.host for task in cluster.workers]
    rank, own = cluster.task_id, cluster.own.host
    local_rank = hosts[:rank].count(own)
    machines = [host for host in dict.fromkeys(hosts) if hosts.count(host) > local_rank]
    return {
        "rank": rank,
        "size": len(hosts),
        "local_rank": local_rank,
        "local_size": hosts.count(own),
        "cross_rank": machines.index(own),
        "cross_size": len(machines),
    }


def _check_place(environ: Mapping[str, str], name: str, place: int) -> None:
    given = _number(environ, name, place, int)
    if given != place:
        raise ValueError(
            f"{_PREFIX}{name} must be that of TF_CONFIG or SLURM, {place}, got {given}: start the "
            "processes by `python -m model_deploy.launch`"
        )


def _number(environ: Mapping[str, str], name: str, default: Any, kind: Callable[[str], Any]) -> Any:
    text = environ.get(f"{_PREFIX}{name}", "").strip()
    try:
        value = kind(text) if text else default
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError(f"{_PREFIX}{name} must be a number of at least 0, got {text!r}")
    return value
