"""The status of a run as a table."""

import datetime

from model_deploy.commands import aligned
from model_deploy.status.file import Status, TaskStatus

# Of so many intervals without a write something is wrong.
_LATE_WRITES = 5
# The parts of a step, in order.
_PARTS = ("input", "computation", "waiting", "exchange", "saving")
_NONE = "-"


def status_report(status: Status, now: float) -> str:
    """Returns a line about a run, and a table of its tasks.

    Args:
      status: what was read.
      now: the time, in seconds since 1970.
    """
    of = "" if status.max_steps is None else f" of {status.max_steps}"
    ago = max(0.0, now - status.written_at)
    line = f"{status.state}, step {status.step}{of}"
    if status.state != "under way":
        line += f", {duration(ago)} ago"
        now = status.written_at  # how long before the end each was heard from
    elif ago > _LATE_WRITES * status.every_secs:
        line = f"last written {duration(ago)} ago, at step {status.step}{of}: is the run dead?"
    rows = [["task", "address", "step", "steps/s", *_PARTS, "memory", "last heard", ""]]
    rows += [_row(task, now) for task in status.tasks]
    return "\n".join([line, "", *aligned(rows, left=(0, 1, len(rows[0]) - 1))])


def duration(secs: float) -> str:
    """Returns seconds in words.

    >>> [duration(each) for each in (0.25, 40.4, 3601)]
    ['0.2 s', '40 s', '1:00:01']
    """
    if secs < 10:
        return f"{secs:.1f} s"
    return f"{secs:.0f} s" if secs < 120 else str(datetime.timedelta(seconds=round(secs)))


def _row(task: TaskStatus, now: float) -> list[str]:
    shares = task.shares or {}
    return [
        task.name,
        task.address or _NONE,
        _NONE if task.step is None else str(task.step),
        _NONE if task.steps_per_sec is None else f"{task.steps_per_sec:.3g}",
        *(f"{shares[part]:.0%}" if part in shares else _NONE for part in _PARTS),
        _NONE if task.memory is None else f"{task.memory / 2**20:,.0f} MiB",
        _NONE if task.heard_at is None else f"{duration(max(0.0, now - task.heard_at))} ago",
        task.note or "",
    ]
