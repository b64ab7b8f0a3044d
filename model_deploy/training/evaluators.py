"""Ends a run by the evaluations of the evaluator beside it, which the chief reads now and then."""

import math
import os
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import say_once
from model_deploy.runs import read_json_lines
from model_deploy.training.loop_options import LoopOptions
from model_deploy.training.patience import Improvements, is_falling
from model_deploy.training.shown.progress import Progress
from model_deploy.training.steps.report import StepContext
from model_deploy.training.timing import Every

_FILE = "evaluations.jsonl"


class EvaluatorHook(tf.train.SessionRunHook):
    """Asks to stop where an evaluator's values have come to the end that options name.

    Args:
      train_dir: the folder of the run.
      metric: name of the metric.
      options: the settings; `stop_by` is a folder in the train_dir.
      progress: is told why the run ends.
      every: between two looks.
    """

    def __init__(
        self, train_dir: str, metric: str, options: LoopOptions, progress: Progress, every: Every
    ) -> None:
        self._path = os.path.join(train_dir, options.stop_by or "", _FILE)
        self._metric, self._options = metric, options
        self._falls = is_falling(metric, options.stop_direction)
        self._progress, self._every = progress, every

    def due(self, step: int) -> bool:
        """Whether the hook takes part in a step."""
        return self._every.due(step)

    def after_run(self, run_context: StepContext, run_values: Any) -> None:
        """Looks for new evaluations."""
        del run_values
        self._every.done(run_context.report.step)
        if self.is_over():
            run_context.request_stop()

    def is_over(self) -> bool:
        """Reads the file; says so if the run is to end.

        Raises:
          ValueError: if the evaluations do not have the metric.
        """
        options, found = self._options, Improvements(falls=self._falls)
        for step, value in self._read():
            found.values[step] = value
            if found.reaches(value, options.stop_at_metric):
                reason = f"{self._metric} {options.stop_at_metric} is reached at step {step}"
                self._progress.line(f"{reason}: the run ends")
                return True
        patience, least = options.stop_patience, options.stop_min_delta
        if patience is None or found.waited(least) < patience:
            return False
        self._progress.line(f"{found.described(self._metric, least)}: the run ends")
        return True

    def _read(self) -> list[tuple[int, float]]:
        if not file_systems.is_file(self._path):
            return []
        try:
            lines = read_json_lines(self._path, "global_step")
        except (OSError, tf.errors.OpError) as error:
            say_once(f"{self._path} cannot be read: {error}")
            return []
        for line in lines:
            if self._metric not in line:
                names = ", ".join(sorted(line))
                raise ValueError(
                    f"stop_metric must be one of {names} in {self._path}, got {self._metric!r}"
                )
        values = [(line["global_step"], line[self._metric]) for line in lines]
        return sorted((step, math.nan if value is None else value) for step, value in values)
