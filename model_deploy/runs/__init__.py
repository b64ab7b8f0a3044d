"""Compares runs by the files in their folders: `python -m model_deploy.runs folder...`.

It reads `options.yaml` and `metrics.jsonl`, also of unfinished runs, without importing TensorFlow.
"""

from model_deploy.runs.comparing import differing_options, runs_table
from model_deploy.runs.drawing import draw_runs
from model_deploy.runs.effective import (
    STEPS,
    TIME_FILE,
    TimeSpent,
    read_time_spent,
    write_time_spent,
)
from model_deploy.runs.reading import (
    METRICS_FILE,
    Run,
    find_runs,
    read_json_lines,
    read_metrics,
    read_run,
    read_run_options,
)

__all__ = [
    "METRICS_FILE",
    "STEPS",
    "TIME_FILE",
    "Run",
    "TimeSpent",
    "differing_options",
    "draw_runs",
    "find_runs",
    "read_json_lines",
    "read_metrics",
    "read_run",
    "read_run_options",
    "read_time_spent",
    "runs_table",
    "write_time_spent",
]
