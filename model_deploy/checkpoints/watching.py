"""Watches a folder for the checkpoints of a run, until the run has ended.

A run has ended at its last step, or where it has left the mark of its end: a run may
stop before its last step, at the metric that it was to reach, say.
"""

import os
import time
from collections.abc import Callable, Iterator

from model_deploy import file_systems
from model_deploy.checkpoints.choosing import checkpoint_step, checkpoints_in
from model_deploy.commands import replaced_file

END_FILE = "run_ended"


def mark_end(train_dir: str | os.PathLike[str], step: int) -> None:
    """Says that the run in this folder has ended after `step`."""
    with replaced_file(os.path.join(train_dir, END_FILE)) as file:
        file.write(f"{step}\n")


def clear_end(train_dir: str | os.PathLike[str]) -> None:
    """Takes the mark away, for a run that goes on."""
    file_systems.remove(os.path.join(train_dir, END_FILE))


def read_end(train_dir: str | os.PathLike[str]) -> int | None:
    """The step after which the run in this folder has ended; None without a mark."""
    try:
        return int(file_systems.read_text(os.path.join(train_dir, END_FILE)))
    except FileNotFoundError:
        return None


def _facts_of_mark(folder: str) -> file_systems.FileFacts | None:
    """What tells one mark from a later one; None without a mark."""
    path = os.path.join(folder, END_FILE)
    try:
        return file_systems.facts_of(path)
    except FileNotFoundError:
        return None


class CheckpointWatch:
    """The checkpoints of a folder, oldest first, and those that appear while it is watched.

    Iteration ends after a checkpoint of the last step, or when none has appeared for some
    time.  One that is deleted before its turn is left out.

    Args:
      folder: folder of the checkpoints.
      interval_secs: seconds between two looks at it.
      timeout_secs: how many seconds to wait for the next checkpoint; None for ever.
      last_step: number of the run's last step; None if only the mark of its end counts.
      start_secs: how many seconds a mark that is there from the beginning does not count: it may be
        of an earlier run, which this run is about to continue.
      wait: waits for a number of seconds.
      clock: gives the time in seconds.

    Attributes:
      reason: why it has stopped, a sentence; '' before that.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        interval_secs: float,
        *,
        timeout_secs: float | None = None,
        last_step: int | None = None,
        start_secs: float = 0.0,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reason = ""
        self._folder = os.fspath(folder)
        self._interval_secs = interval_secs
        self._timeout_secs = timeout_secs
        self._last_step = last_step
        self._start_secs = start_secs
        self._wait = wait
        self._clock = clock

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        step = -1
        since = began = self._clock()
        first_mark = _facts_of_mark(self._folder)
        while True:
            # The mark first: what is listed after it was set is all that there will be.
            is_early = self._clock() - began < self._start_secs
            is_old = is_early and _facts_of_mark(self._folder) == first_mark
            ended = None if is_old else read_end(self._folder)
            fresh = [path for path in checkpoints_in(self._folder) if path not in seen]
            if fresh:
                seen.add(fresh[0])
                step = max(step, checkpoint_step(fresh[0]))
                yield fresh[0]
                since = self._clock()
            elif any(end is not None and step >= end for end in (self._last_step, ended)):
                self.reason = f"the run in {self._folder} has ended at step {step}"
                return
            elif self._timeout_secs is not None and self._clock() - since >= self._timeout_secs:
                self.reason = (
                    f"no new checkpoint in {self._folder} for {self._timeout_secs:g} seconds"
                )
                return
            else:
                self._wait(self._interval_secs)
