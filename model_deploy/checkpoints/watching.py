"""Watches a folder for the checkpoints of a run, until the run has ended.

A run has ended if a checkpoint has the last step, or if the run left the file `run_ended`: a run
may stop before its last step, at a target metric, say.
"""

import os
import time
from collections.abc import Callable, Iterator

from model_deploy import file_systems
from model_deploy.checkpoints.choosing import checkpoint_step, checkpoints_in
from model_deploy.checkpoints.damage import (
    UNREADABLE,
    damage_behind,
    note_on_manifest,
    quick_damage,
)
from model_deploy.checkpoints.files import is_checkpoint, named_step
from model_deploy.checkpoints.good import say_once
from model_deploy.commands import read_checked, write_checked

END_FILE = "run_ended"
# Seconds that a checkpoint without a manifest, which is written last, is left alone once.
_MANIFEST_SECS = 1.0


def mark_end(train_dir: str | os.PathLike[str], step: int) -> None:
    """Writes the file that says that the run in this folder ended after `step`."""
    write_checked(os.path.join(train_dir, END_FILE), {"step": step})


def clear_end(train_dir: str | os.PathLike[str]) -> None:
    """Removes the end mark, for a run that continues."""
    file_systems.remove(os.path.join(train_dir, END_FILE))


def read_end(train_dir: str | os.PathLike[str]) -> int | None:
    """Returns the step after which the run in this folder ended; None without an end mark.

    Raises:
      ValueError: naming the file, if it is damaged.
    """
    path = os.path.join(train_dir, END_FILE)
    try:
        found = read_checked(path)
    except FileNotFoundError:
        return None
    if not isinstance(step := found.get("step"), int):
        raise ValueError(f"{path} must have a step, got {step!r}")
    return step


def _step_of_good(path: str) -> int | None:
    """Returns the step of a checkpoint that is whole as far as its manifest says.

    Of a damaged one it says so and returns None, as of one that has been deleted.
    """
    damage = quick_damage(path)
    if damage is None:
        try:
            return checkpoint_step(path)
        except UNREADABLE as error:
            damage = damage_behind(path, error)
            if damage is None:
                raise
    if is_checkpoint(path):
        print(f"not evaluated: {damage}", flush=True)
    return None


def _facts_of_mark(folder: str) -> file_systems.FileFacts | None:
    """What tells one mark from a later one; None without a mark."""
    path = os.path.join(folder, END_FILE)
    try:
        return file_systems.facts_of(path)
    except FileNotFoundError:
        return None


class CheckpointWatch:
    """Iterates over the checkpoints of a folder, oldest first, waiting for new ones.

    Iteration ends after the checkpoint of the last step, or when no new one appears in time.
    Checkpoints deleted before their turn are left out.

    Args:
      folder: folder of the checkpoints.
      interval_secs: seconds between two looks at the folder.
      timeout_secs: seconds to wait for the next checkpoint; None to wait forever.
      last_step: number of the run's last step; None if only the end mark counts.
      start_secs: seconds for which an end mark that is there from the beginning does not count: it
        may be of an earlier run, which this run is about to continue.
      wait: function that waits for a number of seconds.
      clock: function that returns the time in seconds.

    Attributes:
      reason: a sentence saying why iteration ended; '' before that.
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
        begun: set[str] = set()  # without a manifest, when they were first seen
        step = -1
        since = began = self._clock()
        first_mark = _facts_of_mark(self._folder)
        while True:
            # The end mark first: no checkpoint is added after it, so the list read next is final.
            is_early = self._clock() - began < self._start_secs
            is_old = is_early and _facts_of_mark(self._folder) == first_mark
            ended = None if is_old else self._end(step)
            fresh = [path for path in checkpoints_in(self._folder) if path not in seen]
            if fresh and fresh[0] not in begun and note_on_manifest(fresh[0]):
                begun.add(fresh[0])
                self._wait(min(_MANIFEST_SECS, self._interval_secs))
            elif fresh:
                seen.add(fresh[0])
                found = _step_of_good(fresh[0])
                # Of a damaged one, too: the run has come so far.
                step = max(step, found or named_step(fresh[0]))
                if found is not None:
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

    def _end(self, step: int) -> int | None:
        """Returns the last step by the run's end mark; if that is damaged, the step so far."""
        try:
            return read_end(self._folder)
        except ValueError as error:
            say_once(f"{error}: the run has ended with its newest checkpoint")
            return step
