"""`BestCheckpoint`: the checkpoint with the best metric, in a folder of its own."""

import math
import os
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.best_value import BEST_FILE, best_value
from model_deploy.checkpoints.files import CHECKPOINT_NAME
from model_deploy.checkpoints.kept import KeptCheckpoints
from model_deploy.checkpoints.saved import variables_to_save
from model_deploy.commands import write_checked

BEST_DIR = "best"


class BestCheckpoint:
    """Keeps the checkpoint with the best metric in the folder `best`.

    Args:
      train_dir: the folder of the run.
      metric: name of the metric.
      device: device that writes files, as for `CheckpointWriter`.
      falls: whether lower values are better.

    Attributes:
      value: the best value so far, in earlier runs too; None before the first.
    """

    def __init__(
        self, train_dir: str, metric: str, device: str = "", *, falls: bool = False
    ) -> None:
        self._folder = os.path.join(train_dir, BEST_DIR)
        self._metric = metric
        self._falls = falls
        self._kept = KeptCheckpoints(self._folder, CHECKPOINT_NAME, 1)
        with tf.device(device):
            self._saver = tf.train.Saver(variables_to_save(), save_relative_paths=True)
        self.value: float | None = best_value(self._folder, metric)

    def offer(self, session: Any, step: int, value: float) -> None:
        """Saves the variables if `value` is better than all earlier values; NaN is not.

        Raises:
          OSError: if they cannot be written.
        """
        if math.isnan(value) or not self._is_better(value):
            return
        file_systems.make_folders(self._folder)
        try:
            self._kept.write(self._saver, session, step, {self._metric: value})
        except OSError as error:
            path = self._kept.path(step)
            raise OSError(f"checkpoint {path} could not be written: {error}") from error
        self.value = value
        write_checked(os.path.join(self._folder, BEST_FILE), {"step": step, self._metric: value})

    def _is_better(self, value: float) -> bool:
        if self.value is None:
            return True
        return value < self.value if self._falls else value > self.value
