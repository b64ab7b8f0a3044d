"""`Pace`: how fast the tasks of a run are, from the view of this process."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from model_deploy import file_systems, graph_walk, internals
from model_deploy.cluster import Cluster, Task
from model_deploy.commands import tell
from model_deploy.deployment import DeployedModel
from model_deploy.status import STATUS_FILE, write_status
from model_deploy.training.pace.beat import Beat
from model_deploy.training.pace.chief import Overview, shares_of
from model_deploy.training.pace.input_work import InputWork
from model_deploy.training.pace.reporting import (
    NUM_COLUMNS,
    Report,
    Reporter,
    Reporting,
    report_secs,
)
from model_deploy.training.pace.servers import Server
from model_deploy.training.pace.spending import Spending
from model_deploy.training.pace.table import SharedTable

# Seconds between two writes of the status: on this machine, and elsewhere.
_WRITE_SECS = 2.0
_WRITE_REMOTE_SECS = 10.0
# A link is told from others among so many workers or more.
_LEAST_IN_RING = 3


class Pace:
    """Where the time of this process's steps goes; other workers report it to the chief.

    Args:
      spending: adds up the time.
      cluster: the cluster and this process's task, a worker; or None.
      work: how long this process's pipelines work; or None.
      by_all_reduce: whether replicas sum gradients by collective ops.
    """

    def __init__(
        self,
        spending: Spending,
        cluster: Cluster | None,
        work: InputWork | None = None,
        *,
        by_all_reduce: bool = False,
    ) -> None:
        self.spending = spending
        self._cluster = cluster
        after = None
        if by_all_reduce and cluster is not None and len(cluster.workers) >= _LEAST_IN_RING:
            after = cluster.workers[(cluster.task_id + 1) % len(cluster.workers)]
        self._reporter = Reporter(spending, work, after)

    @contextlib.contextmanager
    def beside(self, session: Any, step: int, is_stopped: Callable[[], bool]) -> Iterator[None]:
        """Reports while a session makes steps, from a step on.

        Args:
          session: the session.
          step: the number of steps made before.
          is_stopped: asked at the end, whether a signal has ended the run.
        """
        del is_stopped
        self.spending.begin(step)
        if self._cluster is None:
            yield
            return
        self._reporter.session = session
        with Reporting(self._cluster, self._reporter).beat():
            yield

    def lines(self) -> list[str]:
        """Returns new lines about workers, on the chief."""
        return []

    def shares(self) -> dict[str, Mapping[str, float]]:
        """Returns on the chief, by worker, the parts of its time since the last call."""
        return {}


class ChiefPace(Pace):
    """The pace of all tasks: names slow workers, and keeps the status file.

    Args:
      spending: adds up the time of the chief itself.
      cluster: the cluster, or None.
      work: how long the chief's pipelines work; or None.
      by_all_reduce: whether replicas sum gradients by collective ops.
      folder: the folder of the run.
      max_steps: number of the last step, or None.
    """

    def __init__(
        self,
        spending: Spending,
        cluster: Cluster | None,
        work: InputWork | None = None,
        *,
        by_all_reduce: bool,
        folder: str,
        max_steps: int | None,
    ) -> None:
        super().__init__(spending, cluster, work, by_all_reduce=by_all_reduce)
        self._folder = folder
        self._max_steps = max_steps
        tasks = [Task("worker", 0, "")] if cluster is None else cluster.tasks
        self._secs = report_secs(cluster)
        self._overview = Overview(tasks, self._secs, by_all_reduce=by_all_reduce)
        self._shown = self._overview.reports
        self._every = _WRITE_SECS if file_systems.is_local(folder) else _WRITE_REMOTE_SECS
        self._written_at = 0.0
        self._error = ""
        self._table: SharedTable | None = None
        self._servers: list[Server] = []

    @contextlib.contextmanager
    def beside(self, session: Any, step: int, is_stopped: Callable[[], bool]) -> Iterator[None]:
        """Watches all tasks, and writes the status, while a session makes steps."""
        self.spending.begin(step)
        self._reporter.session = session
        self._written_at = time.monotonic()
        self._table = None
        with (
            self._reporter.timing_link(self._secs),
            Beat(self._look, self._secs, self._close),
        ):
            state = "failed"
            try:
                yield
                state = "ended"
            finally:
                self._reporter.session = None  # which may be lost
                others = self._overview.reports[1:]
                self._overview.add([self._reporter.report(), *others], time.time())
                self._write("stopped" if is_stopped() else state)

    def lines(self) -> list[str]:
        """Returns new lines about workers."""
        found = []
        while self._overview.lines:
            found.append(self._overview.lines.popleft())
        return found

    def shares(self) -> dict[str, Mapping[str, float]]:
        """Returns, by worker, the parts of its time since the last call."""
        spent = self._overview.since(self._shown)
        self._shown = self._overview.reports
        found = {f"worker_{i}": shares_of(each) for i, each in spent.items()}
        return {worker: shares for worker, shares in found.items() if shares is not None}

    def _look(self) -> None:
        """Reads the reports of all tasks, and writes the status, if it is time to."""
        writes = time.monotonic() - self._written_at >= self._every
        if writes or self._reporter.is_due():
            self._read()
        if writes:
            self._written_at = time.monotonic()
            self._write("under way")

    def _read(self) -> None:
        """Reads the reports of all tasks."""
        others = []
        if self._cluster is not None:
            if self._table is None:
                table = SharedTable(self._cluster, NUM_COLUMNS)
                table.start()
                self._table = table
                chief = self._cluster.workers[0]
                self._servers = [Server(chief, each) for each in self._cluster.ps]
            rows = self._table.read()[1 : len(self._cluster.workers)]
            others = [*map(Report.of_row, rows), *(each.report() for each in self._servers)]
        self._overview.add([self._reporter.report(), *others], time.time())

    def _write(self, state: str) -> None:
        """Writes the status; a run goes on without it, and says why once."""
        status = self._overview.status(state, self._every, self._max_steps, time.time())
        try:
            write_status(self._folder, status)
            self._error = ""
        except OSError as error:
            if not self._error:
                self._error = str(error)
                path = os.path.join(self._folder, STATUS_FILE)
                tell(f"{path} cannot be written: {error}")

    def _close(self) -> None:
        if self._table is not None:
            self._table.close()
        for server in self._servers:
            server.close()


def pace_of(
    model: DeployedModel,
    cluster: Cluster | None,
    folder: str,
    *,
    is_chief: bool,
    max_steps: int | None,
) -> Pace:
    """Returns the pace of a run.

    Args:
      model: what `deploy` returned, with an optimizer.
      cluster: the cluster and this process's task, a worker; or None.
      folder: the folder of the run.
      is_chief: whether this process writes files.
      max_steps: number of the last step, or None.
    """
    replicas = 1 if model.config is None else model.config.num_replicas
    by_all_reduce = model.owns_variables and replicas > 1
    spending = Spending(
        by_all_reduce=by_all_reduce, has_marks=not internals.ops_are_deterministic()
    )
    work = None
    if cluster is not None and len(cluster.workers) > 1 and model.is_synchronous:
        work = InputWork(graph_walk.ancestors(tensor.op for tensor in model.computed))
    if not is_chief:
        return Pace(spending, cluster, work, by_all_reduce=by_all_reduce)
    return ChiefPace(
        spending, cluster, work, by_all_reduce=by_all_reduce, folder=folder, max_steps=max_steps
    )
