"""`metrics.jsonl`: the numbers of a run, one JSON object per log or evaluation."""

import collections
import contextlib
import json
import math
import os
import sys
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import Storage
from model_deploy.runs import METRICS_FILE

# As many lines wait in memory where they cannot be written; older ones are dropped.
_MOST_LINES = 10_000


class MetricsLog:
    """Appends to `metrics.jsonl` in a folder; what cannot be written waits in memory.

    A run that is resumed after being killed writes some steps again, and so does one after a full
    disk: of several lines for a step the last one counts.

    Args:
      train_dir: the folder.
      storage: the run's, told of lines that cannot be written.

    Attributes:
      storage: as given.
    """

    def __init__(self, train_dir: str, storage: Storage | None = None) -> None:
        self.storage = storage or Storage()
        self._path = os.path.join(train_dir, METRICS_FILE)
        self._file: Any = None
        self._lines: collections.deque[bytes] = collections.deque()  # not yet written
        self._dropped = 0

    def add(self, values: Mapping[str, Any]) -> None:
        """Writes one JSON object; NaN and infinity, which JSON lacks, become null."""
        known = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values.items()
        }
        self._lines.append(json.dumps(known, allow_nan=False).encode() + b"\n")
        if len(self._lines) > _MOST_LINES:
            self._lines.popleft()
            self._dropped += 1
        self._write()

    def close(self) -> None:
        """Closes the file; says how many lines are lost."""
        if self._lines:
            self._write()
        self._close()
        lost = self._dropped + len(self._lines)
        if lost:
            print(f"warning: {lost} lines of {self._path} are lost", file=sys.stderr, flush=True)

    def _write(self) -> None:
        with self.storage.trying(METRICS_FILE):
            try:
                if self._file is not None and not self._is_there():
                    self._close()
                if self._file is None:
                    self._open()
                self._file.write(b"".join(self._lines))
                self._file.flush()
            except (OSError, tf.errors.OpError):
                self._close()
                raise
            self._lines.clear()

    def _open(self) -> None:
        broken = self._ends_within_a_line()
        self._file = file_systems.open_file(self._path, "ab")
        if broken:  # the process was killed while it wrote, or the disk was full
            self._file.write(b"\n")

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError, tf.errors.OpError):
                file.close()

    def _is_there(self) -> bool:
        """Whether the folder still has the file; elsewhere a look costs too much."""
        return not file_systems.is_local(self._path) or file_systems.is_file(self._path)

    def _ends_within_a_line(self) -> bool:
        if not file_systems.is_file(self._path):
            return False
        with file_systems.open_file(self._path, "rb") as file:
            size = file_systems.facts_of(self._path).size
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"
