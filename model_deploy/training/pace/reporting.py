"""`Reporter`: hands in where the time of this task's steps goes, and how much memory it holds."""

import contextlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from model_deploy.cluster import Cluster, Task, connection_error
from model_deploy.training.pace.beat import Beat
from model_deploy.training.pace.input_work import InputWork
from model_deploy.training.pace.spending import Spending, Spent
from model_deploy.training.pace.table import SharedTable

# Seconds between two reports: of a step, of several steps that came faster, and of a task that
# makes none, which still is there.  The chief's server makes a step of its own for each report, of
# which TensorFlow may keep some 550 bytes, see docs/faults.md.
_STEP_SECS = 0.1
_FAST_SECS = 0.5
_ALIVE_SECS = 1.0
# So many in a report are not faster: one may end just before the last report, and one after it.
_FEW_STEPS = 2
# A connection to a neighbour that takes so long is given up.
_CONNECT_SECS = 1.0
# Seconds between two looks of a chief that is alone.
_ALONE_SECS = 0.5
# With many tasks longer, so that the chief gets at most 200 reports in a second.
_SECS_OF_TASK = 0.005


class Report(NamedTuple):
    """The row of a task in the shared table.

    Attributes:
      number: number of its reports; 0 if none has come.
      memory: bytes of memory that the process holds; 0 if it is not known.
      input_work: seconds that its pipelines have worked, see `InputWork`.
      link_secs: seconds in which the newest connection to the next worker was made; 0 if none was.
      spent: where the time of its steps went.
    """

    number: float = 0
    memory: float = 0
    input_work: float = 0.0
    link_secs: float = 0.0
    spent: Spent = Spent()

    def row(self) -> list[float]:
        """Returns the numbers of the row."""
        return [*self[:-1], *self.spent]

    @classmethod
    def of_row(cls, row: Sequence[float]) -> "Report":
        """Returns the report in a row."""
        number, memory, work, link_secs, step, steps, *secs = map(float, row)
        spent = Spent(int(step), int(steps), *secs)
        return cls(number, memory, work, link_secs, spent)


NUM_COLUMNS = len(Report().row())


def report_secs(cluster: Cluster | None) -> float:
    """Returns the seconds between two reports of a task, at least."""
    return _ALONE_SECS if cluster is None else max(_STEP_SECS, _SECS_OF_TASK * len(cluster.tasks))


def memory_held() -> int:
    """Returns the bytes of memory that this process holds (Linux: resident set); 0 if unknown."""
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Reporter:
    """Makes the reports of this task.

    Args:
      spending: where the time of its steps goes.
      work: how long its pipelines work; None where nobody asks.
      neighbour: the task to which connections are timed; or None.

    Attributes:
      session: the session of the steps; None while there is none.
    """

    def __init__(
        self,
        spending: Spending,
        work: InputWork | None = None,
        neighbour: Task | None = None,
    ) -> None:
        self._spending = spending
        self._work = work
        self._neighbour = neighbour
        self._report = Report()
        self._link_secs = 0.0
        self._reported_at = -math.inf
        self.session: Any = None

    def report(self) -> Report:
        """Returns a new report.

        Raises:
          tf.errors.OpError: if the session does not answer.
        """
        spent = self._spending.spent
        report = self._report
        work = report.input_work
        if self._work is not None and self.session is not None:
            work = self._work.secs(self.session)
        self._report = report._replace(
            number=report.number + 1,
            memory=memory_held(),
            input_work=work,
            link_secs=self._link_secs,
            spent=spent,
        )
        self._reported_at = time.monotonic()
        return self._report

    def is_due(self) -> bool:
        """Whether it is time for a report: after each step, but of faster ones each half second."""
        secs = time.monotonic() - self._reported_at
        steps = self._spending.spent.steps - self._report.spent.steps
        if steps == 0:
            return secs >= _ALIVE_SECS
        return steps <= _FEW_STEPS or secs >= _FAST_SECS

    def timing_link(self, secs: float) -> contextlib.AbstractContextManager[Any]:
        """Returns a context manager in which connections to the neighbour, if any, are timed.

        In a thread of their own, as one takes long over a slow link.

        Args:
          secs: seconds between two of them.
        """
        if self._neighbour is None:
            return contextlib.nullcontext()
        neighbour = self._neighbour

        def connect() -> None:
            began = time.perf_counter()
            error = connection_error(neighbour, _CONNECT_SECS)
            if error is None or isinstance(error, TimeoutError):
                self._link_secs = time.perf_counter() - began

        return Beat(connect, secs)


class Reporting:
    """Hands in the reports of a task other than the chief, by a thread.

    Args:
      cluster: the cluster and this process's task.
      reporter: makes the reports.
    """

    def __init__(self, cluster: Cluster, reporter: Reporter) -> None:
        self._reporter = reporter
        self._table = SharedTable(cluster, NUM_COLUMNS)
        self._secs = report_secs(cluster)

    @contextlib.contextmanager
    def beat(self) -> Iterator[None]:
        """Hands in reports while a `with` block runs."""
        with (
            self._reporter.timing_link(self._secs),
            Beat(self._hand_in, self._secs, self._table.close),
        ):
            yield

    def _hand_in(self) -> None:
        if self._reporter.is_due():
            self._table.hand_in(self._reporter.report().row())
