"""`metrics.jsonl`: the numbers of a run, one JSON object per log or evaluation."""

import contextlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import Storage
from model_deploy.runs import METRICS_FILE
from model_deploy.trackers import Tracking
from model_deploy.training.shown.later import WrittenLater


class MetricsLog:
    """Appends to `metrics.jsonl` in a folder, by a thread; what cannot be written waits in memory.

    A run that is resumed after being killed writes some steps again, and so does one after a full
    disk: of several lines for a step the last one counts.

    Args:
      train_dir: the folder.
      storage: the run's, told of lines that cannot be written.
      tracking: gets each line, too; or None.

    Attributes:
      storage: as given.
    """

    def __init__(
        self, train_dir: str, storage: Storage | None = None, tracking: Tracking | None = None
    ) -> None:
        self.storage = storage or Storage()
        self._tracking = tracking
        self._path = os.path.join(train_dir, METRICS_FILE)
        self._file: Any = None
        self._later = WrittenLater(
            f"lines of {METRICS_FILE}", self.storage, self._write, self._give_up
        )

    def add(self, values: Mapping[str, Any]) -> None:
        """Writes one JSON object; NaN and infinity, which JSON lacks, become null."""
        if self._tracking is not None:
            self._tracking.add(values)
        known = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values.items()
        }
        self._later.add(json.dumps(known, allow_nan=False).encode() + b"\n")

    def close(self) -> None:
        """Closes the file; says how many lines are lost."""
        self._later.close()

    def _write(self, lines: Sequence[bytes]) -> None:
        if self._file is not None and not self._is_there():
            self._give_up()
        if self._file is None:
            self._open()
        self._file.write(b"".join(lines))
        self._file.flush()

    def _open(self) -> None:
        broken = self._ends_within_a_line()
        self._file = file_systems.open_file(self._path, "ab")
        if broken:  # the process was killed while it wrote, or the disk was full
            self._file.write(b"\n")

    def _give_up(self) -> None:
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
