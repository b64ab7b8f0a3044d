"""Waits until other tasks can be reached, and says which are missing, or until one is gone."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy.cluster.network import CONNECT_SECS, connection_error, names_of, unreachable
from model_deploy.processes import Cluster, Task

POLL_SECS = 0.1


def tasks_needed(cluster: Cluster) -> tuple[Task, ...]:
    """The tasks without which this one cannot start.

    A worker needs the parameter servers and no other worker; without parameter servers
    it needs all other workers. A parameter server, or an evaluator, needs no other task.
    """
    if cluster.job_name != "worker":
        return ()
    return cluster.ps or tuple(task for task in cluster.workers if task != cluster.own)


def wait_for_tasks(
    tasks: Sequence[Task],
    timeout: float,
    *,
    report: Callable[[str], Any] = print,
    report_secs: float = 5.0,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Returns when all of `tasks` accept connections.

    Args:
      tasks: the tasks to wait for, see `tasks_needed`.
      timeout: seconds to wait at most.
      report: called with a line that names the missing tasks, at once and then every
        `report_secs` while some are missing.
      report_secs: seconds between these lines.
      stop: asked between tries; True ends the waiting.

    Raises:
      TimeoutError: naming the tasks that were not there in time.
    """
    started = time.monotonic()
    reported = float("-inf")
    missing = list(tasks)
    while not stop():
        left = started + timeout - time.monotonic()
        patience = max(POLL_SECS, min(left, CONNECT_SECS))
        missing = [task for task in missing if connection_error(task, patience)]
        if not missing:
            return
        names, now = names_of(missing), time.monotonic()
        if now >= started + timeout:
            raise TimeoutError(
                f"start_timeout must be long enough for all tasks to start, got {timeout:g} s "
                f"without {names}"
            )
        if now - reported >= report_secs:
            report(f"waiting for {names}")
            reported = now
        time.sleep(POLL_SECS)


def wait_for_loss(
    tasks: Sequence[Task], timeout: float, *, stop: Callable[[], bool] = lambda: False
) -> list[Task]:
    """Returns the tasks that are gone, once there are some; an empty list after `timeout` seconds.

    Args:
      tasks: tasks of which one is about to end.
      timeout: seconds to wait at most.
      stop: asked between tries; True ends the waiting.
    """
    end = time.monotonic() + timeout
    while not (gone := unreachable(tasks)) and time.monotonic() < end and not stop():
        time.sleep(POLL_SECS)
    return gone
