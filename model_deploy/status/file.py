"""`status.json`: what each task of a run is doing, as the chief has last heard from it."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from model_deploy import file_systems
from model_deploy.commands import parse_json, replaced_file

STATUS_FILE = "status.json"
STATES = ("under way", "ended", "stopped", "failed")


@dataclasses.dataclass(frozen=True)
class TaskStatus:
    """What one task is doing; what is not known is None.

    Attributes:
      name: the task, such as "worker 1".
      address: its `host:port`; None for a run of one process.
      step: the last step that it has reported.
      steps_per_sec: its own steps per second, of late.
      shares: parts of its time, of late, by name: they add up to 1.
      memory: bytes of memory that its process holds.
      heard_at: when the chief has last heard from it, in seconds since 1970.
      note: what else is to be said, such as "1.8x slower (input)".
    """

    name: str
    address: str | None = None
    step: int | None = None
    steps_per_sec: float | None = None
    shares: Mapping[str, float] | None = None
    memory: int | None = None
    heard_at: float | None = None
    note: str | None = None


@dataclasses.dataclass(frozen=True)
class Status:
    """What a run is doing.

    Attributes:
      written_at: when the chief wrote this, in seconds since 1970.
      every_secs: seconds between two writes while the run is under way.
      state: "under way", "ended", "stopped" (by a signal) or "failed" (by an error).
      step: the global step.
      max_steps: number of the last step; None for no end.
      tasks: all tasks, the workers first.

    Raises:
      ValueError: for an unknown state.
    """

    written_at: float
    every_secs: float
    state: str
    step: int
    max_steps: int | None
    tasks: Sequence[TaskStatus]

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, got {self.state!r}")


def write_status(folder: str | os.PathLike[str], status: Status) -> None:
    """Replaces `status.json` in a folder, as a whole.

    Raises:
      OSError: if it cannot be written.
    """
    with replaced_file(os.path.join(folder, STATUS_FILE)) as file:
        json.dump(dataclasses.asdict(status), file, allow_nan=False)


def read_status(folder: str | os.PathLike[str]) -> Status:
    """Reads `status.json` in the folder of a run.

    Raises:
      ValueError: if there is none, or it is not what `write_status` writes.
      OSError: if it cannot be read.
    """
    path = os.path.join(folder, STATUS_FILE)
    if not file_systems.is_file(path):
        raise ValueError(
            f"folder must be that of a run, with {STATUS_FILE}, got {os.fspath(folder)}"
        )
    try:
        fields = parse_json(file_systems.read_bytes(path))
        tasks = [_checked(TaskStatus, _TASK_KINDS, each) for each in fields.pop("tasks")]
        return _checked(Status, _STATUS_KINDS, {**fields, "tasks": tasks})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} must be the status of a run, got {error}") from error


_NUMBER = (int, float)
_NONE = type(None)
_TASK_KINDS: Mapping[str, Any] = {
    "name": str,
    "address": (str, _NONE),
    "step": (int, _NONE),
    "steps_per_sec": (*_NUMBER, _NONE),
    "shares": (dict, _NONE),
    "memory": (int, _NONE),
    "heard_at": (*_NUMBER, _NONE),
    "note": (str, _NONE),
}
_STATUS_KINDS: Mapping[str, Any] = {
    "written_at": _NUMBER,
    "every_secs": _NUMBER,
    "state": str,
    "step": int,
    "max_steps": (int, _NONE),
    "tasks": list,
}


def _checked(kind: Any, kinds: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
    """Makes an object of fields that were read, each of the right kind; others are ignored."""
    known = {name: value for name, value in fields.items() if name in kinds}
    values = list(known.values())
    for name, value in known.items():
        if not isinstance(value, kinds[name]) or isinstance(value, bool):
            raise ValueError(f"{name} {value!r}")
        if isinstance(value, dict):
            values += value.values()
            if not all(isinstance(each, _NUMBER) for each in value.values()):
                raise ValueError(f"{name} {value!r}")
    if not all(math.isfinite(each) for each in values if isinstance(each, float)):
        raise ValueError("a number that is not finite")
    return kind(**known)
