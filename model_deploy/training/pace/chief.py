"""`Overview`: what the chief knows of all tasks, who is slow, and the status file."""

import collections
import math
from collections.abc import Mapping, Sequence

from model_deploy.cluster import Task
from model_deploy.status import Status, TaskStatus
from model_deploy.training.pace.comparing import SlowWatch, Stretch, divided
from model_deploy.training.pace.reporting import Report
from model_deploy.training.pace.spending import PARTS, Spent

# A stretch of steps takes so many intervals between reports at least.
_INTERVALS_OF_STRETCH = 1.5
# A worker that was not heard from for so long is not compared any more.
_GONE_SECS = 10.0
# Rates and shares in the status are those of so many seconds.
_LATELY_SECS = 10.0


class Overview:
    """What is known of the tasks of a run, from their reports.

    Args:
      tasks: all tasks, workers first.
      report_secs: seconds between two reports of a task, at least.
      by_all_reduce: whether replicas sum gradients by collective ops.
    """

    def __init__(
        self, tasks: Sequence[Task], report_secs: float, *, by_all_reduce: bool = False
    ) -> None:
        self._tasks = tasks
        self._by_all_reduce = by_all_reduce
        self._stretch_secs = _INTERVALS_OF_STRETCH * report_secs
        self._watch = SlowWatch(by_all_reduce=by_all_reduce)
        self._reports = [Report() for _ in tasks]
        self._heard_at = [math.nan for _ in tasks]  # since 1970
        self._began: dict[int, Report] = {}  # where the stretch began, by worker
        self._began_at = -math.inf
        self._earlier: collections.deque[tuple[float, list[Report]]] = collections.deque()
        self.lines: collections.deque[str] = collections.deque()

    def add(self, reports: Sequence[Report], now: float) -> None:
        """Takes in the newest report of each task.

        Args:
          reports: one for each task.
          now: the time, in seconds since 1970.
        """
        for i, report in enumerate(reports):
            if report.number != self._reports[i].number:
                self._heard_at[i] = now
        self._reports = list(reports)
        self._compare(now)
        if not self._earlier or now - self._earlier[-1][0] >= _LATELY_SECS / 10:
            self._earlier.append((now, self._reports))
            while len(self._earlier) > 1 and now - self._earlier[1][0] >= _LATELY_SECS:
                self._earlier.popleft()

    def _compare(self, now: float) -> None:
        """Compares the workers when all that are there have made a step."""
        there = {
            i: self._reports[i]
            for i, task in enumerate(self._tasks)
            if task.job_name != "ps" and now - self._heard_at[i] < _GONE_SECS
        }
        for i, report in there.items():
            begun = self._began.get(i)
            if begun is None or report.spent.steps < begun.spent.steps:  # started, or again
                self._began[i] = report
        made = {i: each.spent.since(self._began[i].spent) for i, each in there.items()}
        if now - self._began_at < self._stretch_secs or any(
            each.steps == 0 for each in made.values()
        ):
            return
        stretches = {i: _stretch(each, self._began[i], there[i]) for i, each in made.items()}
        self._began, self._began_at = dict(there), now
        for line in self._watch.add(stretches, now):
            self.lines.append(line)

    def lately(self) -> dict[int, Spent]:
        """Returns what each worker that made steps of late has spent on them."""
        earlier = self._earlier[0][1] if self._earlier else self._reports
        return self.since(earlier)

    def since(self, earlier: Sequence[Report]) -> dict[int, Spent]:
        """Returns what each worker that made steps has spent since earlier reports."""
        made = {}
        for i, (report, before) in enumerate(zip(self._reports, earlier, strict=True)):
            begun = before.spent if before.spent.steps <= report.spent.steps else Spent()
            spent = report.spent.since(begun)
            if spent.steps and self._tasks[i].job_name != "ps":
                made[i] = spent
        return divided(made) if self._by_all_reduce else made

    @property
    def reports(self) -> Sequence[Report]:
        """The newest reports."""
        return self._reports

    def status(self, state: str, every_secs: float, max_steps: int | None, now: float) -> Status:
        """Returns the status of the run, for the arguments see `Status`."""
        lately = self.lately()
        secs = now - self._earlier[0][0] if self._earlier else 0.0
        tasks = [self._of_task(i, lately.get(i), secs) for i in range(len(self._tasks))]
        step = max(each.spent.step for each in self._reports)
        return Status(now, every_secs, state, step, max_steps, tasks)

    def _of_task(self, i: int, spent: Spent | None, secs: float) -> TaskStatus:
        task, report = self._tasks[i], self._reports[i]
        note = None
        if i in self._watch.slow:
            factor, part = self._watch.slow[i]
            note = f"{factor:.1f}x slower ({part})"
        return TaskStatus(
            str(task),
            task.address or None,
            report.spent.step if report.spent.steps else None,
            spent.steps / secs if spent and secs > 0 else None,
            shares_of(spent) if spent else None,
            int(report.memory) or None,
            None if math.isnan(self._heard_at[i]) else self._heard_at[i],
            note,
        )


def shares_of(spent: Spent) -> Mapping[str, float] | None:
    """Returns the share of each part of a step in the time of steps; None if it is not known."""
    parts = {part: getattr(spent, part) for part in PARTS}
    whole = sum(parts.values())
    if not whole > 0:
        return None
    return {part: secs / whole for part, secs in parts.items()}


def _stretch(spent: Spent, begun: Report, report: Report) -> Stretch:
    return Stretch(spent, report.input_work - begun.input_work, report.link_secs)
