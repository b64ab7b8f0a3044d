"""`WrittenLater`: records for a file, which a thread writes, and which wait where it cannot."""

import collections
import time
from collections.abc import Callable, Sequence

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints import OneAtATime, Storage
from model_deploy.commands import tell

# As many records wait in memory; older ones are dropped.
_MOST = 10_000
# Seconds in which a thread waits for more records: to start one takes longer than a short step.
_LINGER_SECS = 0.02


class WrittenLater:
    """Records that a thread writes in their order, so that slow storage does not stop steps.

    Args:
      what: what the records are, in words.
      storage: told of records that cannot be written; these are tried again.
      write: writes records so that others can read them.
      give_up: called when `write` has failed, and at the end.
      every_secs: seconds between two writes, the first at once; 0 to write as soon as possible.
    """

    def __init__(
        self,
        what: str,
        storage: Storage,
        write: Callable[[Sequence[bytes]], None],
        give_up: Callable[[], None],
        every_secs: float = 0.0,
    ) -> None:
        self._what, self._storage, self._every_secs = what, storage, every_secs
        self._write_records, self._give_up = write, give_up
        self._records: collections.deque[bytes] = collections.deque()
        self._dropped = 0
        self._thread = OneAtATime()
        self._next = 0.0

    def add(self, record: bytes) -> None:
        """Adds a record."""
        is_free = not self._thread.is_running  # else the oldest are being written
        if len(self._records) >= _MOST:
            self._dropped += 1
            if not is_free:
                return
            self._records.popleft()
        self._records.append(record)
        now = time.monotonic()
        if is_free and (now >= self._next or self._storage.is_overdue(self._what)):
            self._next = now + self._every_secs
            self._thread.wait()
            self._thread.start(self._what, self._write_while_more_come)

    def close(self) -> None:
        """Writes the remaining records; says how many are lost."""
        self._thread.wait()
        for _ in range(2):  # the first time, maybe, to a file of a disk that is gone
            if self._records:
                self._write()
        self._give_up()
        lost = self._dropped + len(self._records)
        if lost:
            tell(f"warning: {self._what}: {lost} are lost")

    def _write_while_more_come(self) -> None:
        """Writes records until none has come for a moment, or they cannot be written."""
        left = len(self._records)
        while left:
            self._write()
            is_written = len(self._records) < left
            if self._every_secs or not is_written:
                return
            time.sleep(_LINGER_SECS)
            left = len(self._records)

    def _write(self) -> None:
        """Writes all records that are there."""
        records = tuple(self._records)
        with self._storage.trying(self._what):
            try:
                self._write_records(records)
            except (OSError, tf.errors.OpError):
                self._give_up()
                raise
            for _ in records:
                self._records.popleft()
