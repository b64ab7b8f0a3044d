"""Problems of a cluster as seen from this process, before anything is started."""

import concurrent.futures
from typing import NamedTuple

from model_deploy.cluster import network
from model_deploy.processes import Cluster, Task


class Finding(NamedTuple):
    """What a check found about a task.

    Attributes:
      task: the task.
      state: how the task looks from this process, in a few words.
      problem: one line on what is wrong with the task, None if nothing is.
    """

    task: Task
    state: str
    problem: str | None = None


def check_tasks(cluster: Cluster, timeout: float) -> list[Finding]:
    """Looks at the own port and the other tasks' machines.

    Args:
      cluster: the cluster and this process's task.
      timeout: seconds to wait for an answer of a machine.
    """
    with concurrent.futures.ThreadPoolExecutor(len(cluster.tasks)) as pool:
        return list(
            pool.map(
                lambda task: _own(task) if task == cluster.own else _other(task, timeout),
                cluster.tasks,
            )
        )


def _own(task: Task) -> Finding:
    try:
        addresses = network.resolve_host(task.host)
    except OSError as error:
        return Finding(task, "this process", f"{task}: host of {task.address}: {error.strerror}")
    if network.is_port_taken(task.port):
        problem = f"{task}: port {task.port} is taken on this machine by another process"
        return Finding(task, "this process, port taken", problem)
    if not all(network.is_local(address) for address in addresses):
        return Finding(task, "this process, address of another machine or a service")
    return Finding(task, "this process, port free")


def _other(task: Task, timeout: float) -> Finding:
    error = network.connection_error(task, timeout)
    if error is None:
        return Finding(task, "listens")
    if isinstance(error, ConnectionRefusedError):
        return Finding(task, "host answers, task not started")
    reason = error.strerror or f"no answer in {timeout:g} s"
    return Finding(task, "not reachable", f"{task}: {task.address} is not reachable: {reason}")
