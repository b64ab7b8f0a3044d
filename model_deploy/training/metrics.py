"""`metrics.jsonl`: the numbers of a run, one JSON object per log or evaluation."""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Appends to `metrics.jsonl` in a folder; what was there before stays.

    A run that was killed and goes on from its checkpoint writes some steps again:
    of several lines for a step, the last one counts.
    """

    def __init__(self, train_dir: str) -> None:
        self._path = os.path.join(train_dir, METRICS_FILE)
        self._file: Any = None

    def add(self, values: Mapping[str, Any]) -> None:
        """Writes one object; numbers that are not finite, which JSON lacks, are null."""
        if self._file is None:
            self._file = open(self._path, "a+b")  # noqa: SIM115 - closed by `close`
            self._end_broken_line()
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

    def _end_broken_line(self) -> None:
        if self._file.seek(0, os.SEEK_END) > 0:
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")  # the process was killed while it wrote


def read_metrics(train_dir: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The objects in `metrics.jsonl`, without lines that a killed process left unfinished."""
    path = os.path.join(train_dir, METRICS_FILE)
    if not os.path.exists(path):
        return []
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                value = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(value, dict) and isinstance(value.get("step"), int):
                found.append(value)
    return found
