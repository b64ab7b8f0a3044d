"""Reads the options and metrics that runs have written into their folders."""

import dataclasses
import os
import statistics
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from model_deploy import file_systems
from model_deploy.commands import OPTIONS_FILE, named_as, parse_json, read_options
from model_deploy.runs.effective import TimeSpent, read_time_spent

METRICS_FILE = "metrics.jsonl"


@dataclasses.dataclass(frozen=True)
class Run:
    """The options and metrics of a run, read from its folder; missing values are None.

    Attributes:
      folder: the run's `train_dir`.
      options: the options in `options.yaml`; empty without the file.
      metrics: the objects in `metrics.jsonl`, in the order of writing.
      time_spent: what `time.json` says; None without the file, or if it is damaged.
    """

    folder: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    time_spent: TimeSpent | None = None

    @property
    def step(self) -> int | None:
        """The last logged step."""
        return max((each["step"] for each in self.metrics), default=None)

    @property
    def loss(self) -> float | None:
        """The last logged loss."""
        return self._last("loss")

    @property
    def accuracy(self) -> float | None:
        """The accuracy of the last evaluation."""
        return self._last("accuracy")

    @property
    def best_accuracy(self) -> float | None:
        """The highest accuracy of all evaluations."""
        return max((value for _, value in self.points("accuracy")), default=None)

    @property
    def images_per_sec(self) -> float | None:
        """The median of the logged rates, which starts and stalls hardly affect."""
        rates = [value for _, value in self.points("images_per_sec")]
        return statistics.median(rates) if rates else None

    @property
    def effective(self) -> float | None:
        """The share of the wall time in steps that count, 0 to 1; else the last one logged."""
        if self.time_spent is not None:
            return self.time_spent.effective
        return self._last("effective")

    def points(self, key: str) -> list[tuple[int, float]]:
        """Returns (step, value) pairs of a metric, in the order of steps.

        Of several values for a step the last counts: a run that was killed repeats some steps.

        Args:
          key: a name in `metrics.jsonl`, such as "loss".
        """
        found = {
            each["step"]: float(each[key])
            for each in self.metrics
            if isinstance(each.get(key), int | float) and abs(each[key]) <= sys.float_info.max
        }
        return sorted(found.items())

    def _last(self, key: str) -> float | None:
        points = self.points(key)
        return points[-1][1] if points else None


def find_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """Reads the runs in folders, on any file system of TensorFlow.

    Args:
      folders: folders of runs, or folders with folders of runs in them, at any depth.

    Returns:
      The runs, each once; runs in one folder in the order of their names.

    Raises:
      ValueError: if a folder has no run, or an `options.yaml` is invalid.
      OSError: if a file cannot be read.
    """
    found: dict[str, Run] = {}
    for folder in (os.fspath(each) for each in folders):
        paths = _run_folders(folder, set())
        if not paths:
            raise ValueError(
                f"folder must be that of a run, with {METRICS_FILE} or {OPTIONS_FILE}, "
                f"or have runs in it, got {folder}"
            )
        for path in paths:
            found.setdefault(os.path.normpath(path), read_run(path))
    return list(found.values())


def read_metrics(
    train_dir: str | os.PathLike[str], keys: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Reads the objects in `metrics.jsonl`, without lines that a killed process left unfinished.

    Args:
      train_dir: the folder of the run.
      keys: the numbers that are kept, beside the step; None for all.

    Returns:
      A dictionary for each line of the log and each evaluation; [] without the file.

    Raises:
      OSError: if it cannot be read.
    """
    path = os.path.join(train_dir, METRICS_FILE)
    return read_json_lines(path, "step", keys) if file_systems.is_file(path) else []


def read_run_options(train_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the settings in the `options.yaml` of a run; {} without the file.

    Args:
      train_dir: the folder of the run.

    Raises:
      ValueError: if the file is invalid.
      OSError: if it cannot be read.
    """
    path = os.path.join(train_dir, OPTIONS_FILE)
    if not file_systems.is_file(path):
        return {}
    with named_as(config=OPTIONS_FILE):
        return read_options(path)


def read_json_lines(
    path: str, step_key: str, keys: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Reads the objects of a file that have a step; other lines are left out.

    Line by line: of a long run only what is kept takes memory.

    Args:
      path: the file.
      step_key: the key of the step, an integer of at most 63 bits.
      keys: of each object what is kept beside the step; None for all.

    Raises:
      OSError: if the file cannot be read.
    """
    kept = None if keys is None else {step_key, *keys}
    found = []
    for line in file_systems.lines_in(path):
        try:
            value = parse_json(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        step = value.get(step_key) if isinstance(value, dict) else None
        if isinstance(step, int) and abs(step) < 1 << 63:
            names = value if kept is None else [key for key in value if key in kept]
            found.append({sys.intern(name): value[name] for name in names})
    return found


def _run_folders(folder: str, seen: set[str]) -> list[str]:
    """Returns the folders of runs in a folder; one that links lead back to is looked at once."""
    real = os.path.realpath(folder) if file_systems.is_local(folder) else folder
    if real in seen:
        return []
    seen.add(real)
    files = (os.path.join(folder, name) for name in (METRICS_FILE, OPTIONS_FILE))
    if any(map(file_systems.is_file, files)):
        return [folder]
    parts = (os.path.join(folder, name) for name in file_systems.names_in(folder))
    return [
        path for part in parts if file_systems.is_folder(part) for path in _run_folders(part, seen)
    ]


def read_run(folder: str, keys: Collection[str] | None = None) -> Run:
    """Reads the run in a folder.

    Args:
      folder: the folder.
      keys: the metrics that are kept; None for all.

    Raises:
      ValueError: if its `options.yaml` is invalid.
      OSError: if a file cannot be read.
    """
    options = read_run_options(folder)
    return Run(folder, options, tuple(read_metrics(folder, keys)), _time_spent(folder))


def _time_spent(folder: str) -> TimeSpent | None:
    """Returns what `time.json` says; the run itself tells of a damaged one when it goes on."""
    try:
        spent = read_time_spent(folder)
    except ValueError:
        return None
    return spent if spent.total else None
