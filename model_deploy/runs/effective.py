"""`TimeSpent`: what a run has spent its wall time on, kept in its folder over all its processes."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping

from model_deploy import file_systems
from model_deploy.commands import parse_json, replaced_file

TIME_FILE = "time.json"
# What time is spent on: steps that count, and all that is not.
STEPS = "steps"
KINDS = (STEPS, "start", "restore", "repeated", "waiting", "saving", "evaluation", "down")
_LEAST_SHOWN = 0.0005  # a share that would be shown as 0.0%


@dataclasses.dataclass(frozen=True)
class TimeSpent:
    """The wall time of a run, from its first process to now, divided into kinds.

    Attributes:
      secs: seconds by kind, of `KINDS`; no kind twice, so that the sum is the wall time.
      highest_step: the last step that was made; steps up to it are repeated when made again.
      until: when the last of these seconds ended, in seconds since the epoch; None for none.
      has_ended: whether the run came to its end then: what comes later is no time of it, until
        somebody lets it go on.

    >>> spent = TimeSpent({"steps": 90.0, "start": 6.0, "saving": 4.0})
    >>> spent.effective, str(spent)
    (0.9, 'effective time 90.0% of 1.7 min: start 6.0%, saving 4.0%')
    """

    secs: Mapping[str, float] = dataclasses.field(default_factory=dict)
    highest_step: int = 0
    until: float | None = None
    has_ended: bool = False

    @property
    def total(self) -> float:
        """The wall time, in seconds."""
        return sum(self.secs.values())

    @property
    def effective(self) -> float:
        """The share of the wall time in steps that count, 0 to 1; NaN without any time."""
        return self.secs.get(STEPS, 0.0) / self.total if self.total else math.nan

    def plus(self, secs: Mapping[str, float], highest_step: int, until: float) -> "TimeSpent":
        """Returns the time with further seconds, by kind, that ended at `until`."""
        both = {kind: self.secs.get(kind, 0.0) + secs.get(kind, 0.0) for kind in KINDS}
        return TimeSpent(both, max(self.highest_step, highest_step), until)

    def __str__(self) -> str:
        """Returns one line: the effective time, and the share of each other kind."""
        shares = {kind: self.secs.get(kind, 0.0) / self.total for kind in KINDS if self.total}
        rest = [f"{kind} {share:.1%}" for kind, share in shares.items() if share >= _LEAST_SHOWN]
        others = ", ".join(each for each in rest if not each.startswith(STEPS))
        line = f"effective time {self.effective:.1%} of {_words(self.total)}"
        return f"{line}: {others}" if others else line


def read_time_spent(train_dir: str | os.PathLike[str]) -> TimeSpent:
    """Reads `time.json` in the folder of a run; without the file nothing was spent.

    Raises:
      ValueError: naming the file, if it is damaged.
      OSError: if it cannot be read.
    """
    path = os.path.join(train_dir, TIME_FILE)
    if not file_systems.is_file(path):
        return TimeSpent()
    try:
        found = parse_json(file_systems.read_bytes(path))
        secs = {kind: float(value) for kind, value in found["secs"].items() if kind in KINDS}
        spent = TimeSpent(
            secs, int(found["highest_step"]), float(found["until"]), bool(found["has_ended"])
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} must be the time of a run, got {error!r}") from error
    if not all(0 <= each < math.inf for each in (*secs.values(), found["until"])):
        raise ValueError(f"{path} must be the time of a run, in seconds of at least 0, got {found}")
    return spent


def write_time_spent(train_dir: str | os.PathLike[str], spent: TimeSpent) -> None:
    """Replaces `time.json` in the folder of a run.

    Raises:
      OSError: if it cannot be written.
    """
    with replaced_file(os.path.join(train_dir, TIME_FILE)) as file:
        json.dump(dataclasses.asdict(spent), file)


def _words(secs: float) -> str:
    """Returns a duration with its unit, such as `12 min`."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if secs >= size:
            count = secs / size
            return f"{count:.1f} {unit}" if count < 10 else f"{count:.0f} {unit}"
    return f"{secs:.1f} s"
