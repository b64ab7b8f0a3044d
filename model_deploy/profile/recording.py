"""`ProfileHook`: records steps while a model is trained."""

import contextlib
from collections.abc import Callable
from typing import Any

from model_deploy.profile.traces import OpTime, ops_of, write_trace


def parse_steps(value: str) -> tuple[int, int]:
    """Parses "100,105" into the first and last step to record, both at least 1.

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


class ProfileHook:
    """Writes a Chrome trace and a TensorBoard profile of some steps of this process.

    The trace has the ops of all devices that take part in a step, also those of parameter servers;
    the profile is TensorFlow's own, of this process.  The training loop calls a hook for the steps
    for which `due` is true.

    Args:
      train_dir: folder of the run.
      steps: steps to record, see `parse_steps`.
      done_before: number of the last step before this session.
      trying: a context manager in which files are written.
    """

    def __init__(
        self,
        train_dir: str,
        steps: str,
        done_before: int,
        trying: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._trying = trying
        self._train_dir = train_dir
        self._first, last = parse_steps(steps)
        self._first = max(self._first, done_before + 1)
        self._left = max(0, last - self._first + 1)
        self._ops: list[OpTime] = []
        self._is_recording = False

    def due(self, step: int) -> bool:
        """Whether to record a step; if others also count steps, that many of this process's own."""
        return step >= self._first and self._left > 0

    def before_run(self, run_context: Any) -> Any:
        import tensorflow  # noqa: PLC0415 - reading a trace does not need it

        tf = tensorflow.compat.v1
        if not self._is_recording:
            self._is_recording = True
            tensorflow.profiler.experimental.start(self._train_dir)
        # Servers trace at the highest level only, which in this process would start a second
        # profile; TensorFlow allows one at a time.
        levels = tf.RunOptions
        level = levels.FULL_TRACE if run_context.session.sess_str else levels.SOFTWARE_TRACE
        options = tf.RunOptions(trace_level=level)
        return tf.train.SessionRunArgs(None, options=options)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._ops += ops_of(run_context.report.step, run_values.run_metadata.step_stats)
        self._left -= 1
        if not self._left:
            self.close()

    def close(self) -> None:
        """Writes the recorded steps, also if the run ends before the last of them."""
        with self._trying():
            self._write()

    def _write(self) -> None:
        import tensorflow  # noqa: PLC0415 - see above

        if self._is_recording:
            self._is_recording = False
            self._left = 0
            tensorflow.profiler.experimental.stop()
        if self._ops:
            ops, self._ops = self._ops, []
            path = write_trace(self._train_dir, ops)
            print(f"profile: {path}; python -m model_deploy.profile {self._train_dir}", flush=True)
