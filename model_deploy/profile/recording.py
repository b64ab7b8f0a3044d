"""`ProfileHook`: records steps while a model is trained."""

from typing import Any

import tensorflow
import tensorflow.compat.v1 as tf

from model_deploy.profile.traces import OpTime, ops_of, write_trace


def parse_steps(value: str) -> tuple[int, int]:
    """First and last step, both from 1, of "100,105".

    Raises:
      ValueError: for anything else.
    """
    parts = value.split(",")
    if len(parts) == 2 and all(part.strip().isdecimal() for part in parts):
        first, last = map(int, parts)
        if 1 <= first <= last:
            return first, last
    raise ValueError(
        f"profile_steps must be the first and the last step, from 1, such as 100,105, got {value!r}"
    )


class ProfileHook(tf.train.SessionRunHook):
    """Writes a Chrome trace and a TensorBoard profile of some steps of this process.

    The trace has the ops of all devices that take part in a step, also those of parameter servers;
    the profile is TensorFlow's own, of this process.

    Args:
      train_dir: where to.
      steps: as `parse_steps` reads it.
      done_before: the number of the step done before.
    """

    def __init__(self, train_dir: str, steps: str, done_before: int) -> None:
        self._train_dir = train_dir
        self._first, last = parse_steps(steps)
        self._first = max(self._first, done_before + 1)
        self._left = max(0, last - self._first + 1)
        self._ops: list[OpTime] = []
        self._is_recording = False

    def due(self, step: int) -> bool:
        """In the steps to record; with others who make steps, in as many of its own."""
        return step >= self._first and self._left > 0

    def before_run(self, run_context: Any) -> Any:
        if not self._is_recording:
            self._is_recording = True
            tensorflow.profiler.experimental.start(self._train_dir)
        # More than the ops of the CPU would be a profile of its own, and there can be one only.
        options = tf.RunOptions(trace_level=tf.RunOptions.SOFTWARE_TRACE)
        return tf.train.SessionRunArgs(None, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._ops += ops_of(run_context.report.step, run_values.run_metadata.step_stats)
        self._left -= 1
        if not self._left:
            self.close()

    def close(self) -> None:
        """Writes what there is, also where the run ends before the last of the steps."""
        if self._is_recording:
            self._is_recording = False
            self._left = 0
            tensorflow.profiler.experimental.stop()
        if self._ops:
            path = write_trace(self._train_dir, self._ops)
            self._ops = []
            print(f"profile: {path}; python -m model_deploy.profile {self._train_dir}", flush=True)
