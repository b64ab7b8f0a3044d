"""The cluster as flags, `TF_CONFIG` or SLURM describe it: which of them counts."""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from model_deploy import internals
from model_deploy.cluster.options import DEFAULT_SLURM_PORT, ClusterOptions
from model_deploy.cluster.tf_config import cluster_from_tf_config, describes_cluster
from model_deploy.commands import named_as
from model_deploy.processes import Cluster

_NAMES = {"flags": "--worker_hosts", "tf_config": "TF_CONFIG", "slurm": "SLURM"}


class Resolved(NamedTuple):
    """A cluster and where its description came from.

    Attributes:
      cluster: the cluster; None for a process on its own, or with the server at `--master`.
      note: one line that says which description was used and which ones were ignored.
    """

    cluster: Cluster | None
    note: str


def resolve(
    options: ClusterOptions,
    environ: Mapping[str, str],
    *,
    task: int = 0,
    master: str = "",
    num_ps_tasks: int = 0,
) -> Resolved:
    """Finds the description of the cluster: flags win over TF_CONFIG, it wins over SLURM.

    Args:
      options: the settings.
      environ: the environment variables.
      task: value of `--task`, used where `options.task_id` is None.
      master: value of `--master`; with one there is no cluster to start here.
      num_ps_tasks: how many of SLURM's tasks are parameter servers.

    Raises:
      ValueError: naming field, rule and value, if the description breaks a rule, if the
        description that `cluster_source` asks for is not there, or for flags that need
        `worker_hosts` without it.
    """
    found = [source for source, is_there in _descriptions(options, environ) if is_there]
    used = None if master else _choose(options.cluster_source, found)
    _check_flags_are_used(options, used)
    note = f"the server at --master={master}" if master else "no cluster: one process"
    if used:
        note = f"cluster from {_NAMES[used]}"
    ignored = [_NAMES[source] for source in found if source != used]
    if ignored:
        note += f"; ignored: {', '.join(ignored)}"
    cluster = None
    if used == "flags":
        cluster = cluster_from_flags(options, task)
    if used == "tf_config":
        cluster = cluster_from_tf_config(environ["TF_CONFIG"])
    if used == "slurm":
        cluster = cluster_from_slurm(environ, num_ps_tasks, options.slurm_port)
    if cluster is not None and options.allow_public_addresses:
        cluster = dataclasses.replace(cluster, allow_public_addresses=True)
    return Resolved(cluster, note)


def _descriptions(
    options: ClusterOptions, environ: Mapping[str, str]
) -> Iterator[tuple[str, bool]]:
    """The sources of a description by priority, each with whether it has one."""
    yield "flags", bool(options.worker_hosts or options.ps_hosts)
    yield "tf_config", describes_cluster(environ.get("TF_CONFIG", ""))
    # A step of one task is a plain srun, of a shell for instance.
    yield "slurm", environ.get("SLURM_STEP_NUM_TASKS", "1") != "1"


def _choose(wanted: str, found: Sequence[str]) -> str | None:
    if wanted == "none":
        return None
    if wanted == "auto":
        return found[0] if found else None
    if wanted not in found:
        raise ValueError(
            f"cluster_source must be one that describes a cluster, got {wanted!r} without "
            f"{_NAMES[wanted]}"
        )
    return wanted


def cluster_from_flags(options: ClusterOptions, task: int = 0) -> Cluster:
    """The cluster of `worker_hosts`, `ps_hosts`, `job_name` and `task_id`.

    Args:
      options: the settings.
      task: value of `--task`, used where `options.task_id` is None.

    Raises:
      ValueError: as `Cluster`; if `task` and `options.task_id` are both given and differ.
    """
    if options.task_id is not None and task not in (0, options.task_id):
        raise ValueError(f"task must be the same as task_id={options.task_id}, got {task}")
    with named_as(task_id="task_id" if options.task_id is not None or not task else "task"):
        return Cluster(
            _split(options.worker_hosts),
            _split(options.ps_hosts),
            options.job_name or "worker",
            task if options.task_id is None else options.task_id,
        )


def cluster_from_slurm(
    environ: Mapping[str, str], num_ps_tasks: int = 0, port: int = DEFAULT_SLURM_PORT
) -> Cluster:
    """The cluster of a SLURM step, by TensorFlow's resolver.

    The first `num_ps_tasks` tasks of the step are parameter servers, the others
    workers.

    Args:
      environ: environment variables with SLURM's.
      num_ps_tasks: how many tasks are parameter servers.
      port: port of the first task on each machine.

    Raises:
      ValueError: if this is not a task of a SLURM step, too few tasks are left for a
        chief, or SLURM has put this task on another machine than the resolver thinks.
    """
    try:
        num_tasks = int(environ["SLURM_STEP_NUM_TASKS"])
        with _slurm_environment(environ):
            if not 0 <= num_ps_tasks < num_tasks:
                raise ValueError(
                    "num_ps_tasks must be at least 0 and leave a worker of the "
                    f"{num_tasks} SLURM tasks, got {num_ps_tasks}"
                )
            jobs = {"ps": num_ps_tasks, "worker": num_tasks - num_ps_tasks}
            step = internals.slurm_step({job: count for job, count in jobs.items() if count}, port)
    except (KeyError, RuntimeError) as error:
        raise ValueError(f"SLURM must have started this process by srun, got {error}") from error
    addresses = step.addresses
    cluster = Cluster(addresses["worker"], addresses.get("ps", ()), step.job_name, step.task_id)
    node = environ.get("SLURMD_NODENAME", cluster.own.host)
    if node != cluster.own.host:
        raise ValueError(
            "SLURM must number its tasks machine by machine (srun --distribution=block), "
            f"got task {environ['SLURM_PROCID']} on {node!r} in place of {cluster.own.host!r}"
        )
    return cluster


@contextlib.contextmanager
def _slurm_environment(environ: Mapping[str, str]) -> Iterator[None]:
    """Lets TensorFlow's resolver, which reads `os.environ`, see the SLURM_ part of `environ`."""
    before = {name: value for name, value in os.environ.items() if name.startswith("SLURM_")}

    def replace(values: Mapping[str, str]) -> None:
        for name in [name for name in os.environ if name.startswith("SLURM_")]:
            del os.environ[name]
        os.environ.update(values)

    replace({name: value for name, value in environ.items() if name.startswith("SLURM_")})
    try:
        yield
    finally:
        replace(before)


def _check_flags_are_used(options: ClusterOptions, used: str | None) -> None:
    if used == "flags":
        return
    for field in ("job_name", "task_id"):
        value = getattr(options, field)
        if value is not None and not options.worker_hosts:
            raise ValueError(f"worker_hosts must be given with {field}={value!r}, got ''")


def _split(text: str) -> list[str]:
    return text.split(",") if text.strip() else []
