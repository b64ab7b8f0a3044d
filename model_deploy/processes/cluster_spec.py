"""`Cluster`: the tasks of a run, their addresses, and which task this process is."""

import dataclasses
import ipaddress
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# An evaluator is outside of the cluster: it has no server and follows the files of the run.
JOB_NAMES = ("ps", "worker", "evaluator")


class Task(NamedTuple):
    """One process of a cluster.

    Attributes:
      job_name: `ps`, `worker` or `evaluator`.
      task_id: index in its job.
      address: `host:port`; '' for an evaluator, which has no server.
      server_task: index of its TensorFlow server in its job, if different from `task_id`; or None.
    """

    job_name: str
    task_id: int
    address: str
    server_task: int | None = None

    def __str__(self) -> str:
        chief = " (chief)" if (self.job_name, self.task_id) == ("worker", 0) else ""
        return f"{self.job_name} {self.task_id}{chief}"

    @property
    def host(self) -> str:
        """Name or address of the task's machine, without the brackets of an IPv6 address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port on which the task listens."""
        return int(self.address.rpartition(":")[2])

    @property
    def device(self) -> str:
        """The task's part of a device name: `/job:ps/task:1`."""
        task = self.task_id if self.server_task is None else self.server_task
        return f"/job:{self.job_name}/task:{task}"


@dataclasses.dataclass(frozen=True)
class Cluster:
    """All tasks of a run, and which of them this process is.

    >>> cluster = Cluster(("a:2222", "b:2222"), ("c:2222",), task_id=1)
    >>> print(cluster.own, cluster.own.address, cluster.is_chief)
    worker 1 b:2222 False

    Attributes:
      worker_hosts: `host:port` of each worker; the first is the chief.
      ps_hosts: `host:port` of each parameter server.
      job_name: job of this process: `worker`, `ps`, or `evaluator` for the one process that
        evaluates what the others train, and is none of the tasks.
      task_id: index of this process in its job.
      server_tasks: index of each worker's TensorFlow server, if these workers are a part of a
        larger cluster of servers.
      allow_public_addresses: whether the server of this process may listen on a public address, or
        on all of the machine's.

    Raises:
      ValueError: naming field, rule and value: for an address that is not `host:port` or is given
        twice, no chief, an unknown job, a `task_id` out of range, another number of `server_tasks`
        than of workers.
    """

    worker_hosts: Sequence[str]
    ps_hosts: Sequence[str] = ()
    job_name: str = "worker"
    task_id: int = 0
    server_tasks: Sequence[int] | None = None
    allow_public_addresses: bool = False

    def __post_init__(self) -> None:
        for field in ("worker_hosts", "ps_hosts"):
            object.__setattr__(self, field, _addresses(field, getattr(self, field)))
        if not self.worker_hosts:
            raise ValueError("worker_hosts must name at least one worker, the chief, got none")
        if self.server_tasks is not None and len(self.server_tasks) != len(self.worker_hosts):
            raise ValueError(
                f"server_tasks must be one for each of {len(self.worker_hosts)} worker_hosts, "
                f"got {self.server_tasks!r}"
            )
        _check_distinct(self.tasks)
        if self.job_name not in JOB_NAMES:
            raise ValueError(
                f"job_name must be one of {', '.join(JOB_NAMES)}, got {self.job_name!r}"
            )
        check_task_id("task_id", self.task_id, *self._own_job)

    @property
    def _own_job(self) -> tuple[str, int]:
        """What lists the tasks of the own job, and how many there are."""
        if self.is_evaluator:
            return "the evaluator", 1
        hosts = self.worker_hosts if self.job_name == "worker" else self.ps_hosts
        return f"{self.job_name}_hosts", len(hosts)

    @property
    def workers(self) -> tuple[Task, ...]:
        """The workers, the chief first."""
        servers: Sequence[int | None] = self.server_tasks or [None] * len(self.worker_hosts)
        each = enumerate(zip(self.worker_hosts, servers, strict=True))
        return tuple(Task("worker", i, host, server) for i, (host, server) in each)

    @property
    def ps(self) -> tuple[Task, ...]:
        """The parameter servers."""
        return tuple(Task("ps", i, host) for i, host in enumerate(self.ps_hosts))

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks that train, workers first."""
        return self.workers + self.ps

    @property
    def own(self) -> Task:
        """The task of this process."""
        if self.is_evaluator:
            return Task("evaluator", 0, "")
        return (self.workers if self.job_name == "worker" else self.ps)[self.task_id]

    @property
    def workers_here(self) -> tuple[Task, ...]:
        """The workers on the machine of this task, in the order of their local ranks.

        >>> cluster = Cluster(("a:1", "b:1", "b:2"), task_id=2)
        >>> here = cluster.workers_here
        >>> print(f"local rank {here.index(cluster.own)} of {len(here)}")
        local rank 1 of 2
        """
        return tuple(task for task in self.workers if task.host == self.own.host)

    @property
    def is_chief(self) -> bool:
        """Whether this process is worker 0."""
        return self.job_name == "worker" and self.task_id == 0

    @property
    def is_evaluator(self) -> bool:
        """Whether this process follows the run from outside of the cluster."""
        return self.job_name == "evaluator"

    def as_dict(self) -> dict[str, list[str]]:
        """Returns addresses by job, as `tf.train.ClusterSpec` takes them."""
        jobs = {"worker": list(self.worker_hosts), "ps": list(self.ps_hosts)}
        return {job: hosts for job, hosts in jobs.items() if hosts}


def check_address(field: str, value: object) -> str:
    """Returns the address `value`, without spaces around it.

    Raises:
      ValueError: if it is not `host:port`, `[IPv6 address]:port` included.
    """
    rule = f"{field} must be host:port, such as 10.0.0.5:2222"
    if not isinstance(value, str):
        raise ValueError(f"{rule}, got {value!r}")
    address = value.strip()
    host, _, port = address.rpartition(":")
    if not host or any(c in "/@, " or c.isspace() for c in host) or not _is_host(host):
        raise ValueError(f"{rule}, got {value!r}")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ValueError(f"{rule} with a port from 1 to 65535, got {value!r}")
    return address


def check_task_id(field: str, value: object, hosts_field: str, num_tasks: int) -> None:
    """Raises ValueError if `value` is not an index of the `num_tasks` tasks."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ValueError(f"{field} must be an integer, got {value!r}")
    if not 0 <= int(value) < num_tasks:
        raise ValueError(
            f"{field} must be at least 0 and less than the {num_tasks} tasks of {hosts_field}, "
            f"got {value}"
        )


def _is_host(host: str) -> bool:
    if ":" not in host and not host.startswith("["):
        return "]" not in host
    if not (host.startswith("[") and host.endswith("]")):
        return False
    try:
        ipaddress.IPv6Address(host[1:-1])
    except ValueError:
        return False
    return True


def _addresses(field: str, values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{field} must be a sequence of host:port, got {values!r}")
    return tuple(check_address(f"{field}[{i}]", value) for i, value in enumerate(values))


def _check_distinct(tasks: Iterable[Task]) -> None:
    owners: dict[tuple[str, int], Task] = {}
    for task in tasks:
        other = owners.setdefault((task.host.lower(), task.port), task)
        if other is not task:
            raise ValueError(
                f"{task.job_name}_hosts[{task.task_id}] must differ from "
                f"{other.job_name}_hosts[{other.task_id}], got {task.address!r} for both"
            )
