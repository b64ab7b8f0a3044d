"""The cluster as `TF_CONFIG` has it, which TFJobs, other operators and Estimator's users write."""

from typing import Any

from model_deploy.commands import parse_json, shortened
from model_deploy.processes import Cluster, check_address, check_task_id

# Types of tasks; `master` is the old name of the chief.
_CHIEF_TYPES = ("chief", "master")
_EVALUATOR = "evaluator"
_TYPES = (*_CHIEF_TYPES, "worker", "ps", _EVALUATOR)


def cluster_from_tf_config(text: str) -> Cluster:
    """The cluster of a `TF_CONFIG`, as Kubernetes operators set it.

    Its `chief` (or `master`) is worker 0 and its workers follow; without a chief its worker 0 is
    the chief.  An `evaluator` is outside of the cluster, and need not be listed in it.

    >>> cluster_from_tf_config(
    ...     '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]},'
    ...     ' "task": {"type": "worker", "index": 0}}').own
    Task(job_name='worker', task_id=1, address='b:1', server_task=None)

    Args:
      text: JSON with `cluster`, the addresses by type, and `task`, this process's
        `type` and `index`.  Other entries, such as `environment`, say nothing of the cluster.

    Raises:
      ValueError: naming field, rule and value, if it is not of this form, or as
        `Cluster`.
    """
    config = _parse(text)
    if config.get("sparseCluster"):
        raise ValueError(
            "TF_CONFIG must have a cluster that lists all tasks, got a sparseCluster: leave out "
            "enableDynamicWorker"
        )
    hosts = _hosts_by_type(_mapping("cluster", config.get("cluster")))
    chiefs = [host for kind in _CHIEF_TYPES for host in hosts[kind]]
    task = _mapping("task", config.get("task"))
    kind, index = task.get("type"), _index(task.get("index", 0))
    if kind not in _TYPES or not (hosts[kind] or kind in ("ps", _EVALUATOR)):
        known = [each for each in _TYPES if hosts[each] or each == _EVALUATOR]
        raise ValueError(
            f"TF_CONFIG task.type must be one of the types in its cluster, {', '.join(known)}, "
            f"got {kind!r}"
        )
    # An evaluator that is not listed is the only one.
    count = 1 if kind == _EVALUATOR else len(hosts[kind])
    check_task_id("TF_CONFIG task.index", index, f"cluster.{kind}", count)
    job_name = "worker" if kind in _CHIEF_TYPES else kind
    shift = len(chiefs) if kind == "worker" else 0
    return Cluster(chiefs + hosts["worker"], hosts["ps"], job_name, index + shift)


def describes_cluster(text: str) -> bool:
    """Whether a `TF_CONFIG` has a cluster, or what is not to be passed over.

    That is broken text, and a role that nobody has alone.
    """
    try:
        config = _parse(text) if text.strip() else {}
    except ValueError:
        return True
    task = config.get("task")
    kind = task.get("type") if isinstance(task, dict) else None
    has_cluster = any(config.get(name) for name in ("cluster", "sparseCluster"))
    return has_cluster or kind in ("ps", _EVALUATOR)


def _parse(text: str) -> dict[str, Any]:
    try:
        config = parse_json(text)
    except ValueError as error:
        raise ValueError(f"TF_CONFIG must be JSON ({error}), got {shortened(text)!r}") from error
    if not isinstance(config, dict):
        raise ValueError(f"TF_CONFIG must be a JSON object, got {shortened(text)!r}")
    return config


def _mapping(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"TF_CONFIG {field} must be a JSON object, got {value!r}")
    return value


def _hosts_by_type(jobs: dict[str, Any]) -> dict[str, list[str]]:
    """The addresses of each type; no address for a type that the cluster has not."""
    unknown = ", ".join(repr(kind) for kind in jobs if kind not in _TYPES)
    if unknown:
        raise ValueError(
            f"TF_CONFIG cluster must have no types but {', '.join(_TYPES)}, got {unknown}"
        )
    hosts = {kind: _hosts(kind, jobs.get(kind, [])) for kind in _TYPES}
    chiefs = {kind: hosts[kind] for kind in _CHIEF_TYPES if hosts[kind]}
    for kinds in (chiefs, {_EVALUATOR: hosts[_EVALUATOR]}):
        addresses = [host for each in kinds.values() for host in each]
        if len(addresses) > 1:
            raise ValueError(
                f"TF_CONFIG cluster.{' and cluster.'.join(kinds)} must be one address, "
                f"got {', '.join(addresses)}"
            )
    if not chiefs and not hosts["worker"]:
        raise ValueError(
            "TF_CONFIG cluster must have a chief or a worker, got the types "
            f"{', '.join(sorted(jobs)) or 'none'}"
        )
    return hosts


def _hosts(kind: str, values: object) -> list[str]:
    field = f"TF_CONFIG cluster.{kind}"
    if not isinstance(values, list):
        raise ValueError(f"{field} must be a list of host:port, got {values!r}")
    return [check_address(f"{field}[{i}]", value) for i, value in enumerate(values)]


def _index(value: object) -> Any:
    """Some operators write the index as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value
