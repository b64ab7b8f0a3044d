"""`metrics.jsonl`: the numbers of a run, one JSON object per log or evaluation."""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from model_deploy import file_systems
from model_deploy.runs import METRICS_FILE


class MetricsLog:
    """Appends to `metrics.jsonl` in a folder.

    A run that is resumed after being killed writes some steps again: of several lines for a step
    the last one counts.
    """

    def __init__(self, train_dir: str) -> None:
        self._path = os.path.join(train_dir, METRICS_FILE)
        self._file: Any = None

    def add(self, values: Mapping[str, Any]) -> None:
        """Writes one JSON object; NaN and infinity, which JSON lacks, become null."""
        if self._file is None:
            broken = self._ends_within_a_line()
            self._file = file_systems.open_file(self._path, "ab")
            if broken:  # the process was killed while it wrote
                self._file.write(b"\n")
        known = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in values.items()
        }
        self._file.write(json.dumps(known, allow_nan=False).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def _ends_within_a_line(self) -> bool:
        if not file_systems.is_file(self._path):
            return False
        with file_systems.open_file(self._path, "rb") as file:
            size = file_systems.facts_of(self._path).size
            file.seek(max(0, size - 1))
            return size > 0 and file.read(1) != b"\n"
