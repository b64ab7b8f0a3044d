"""`train`: runs a deployed model to its last step, with checkpoints and summaries."""

import math
import os
import tempfile
import time
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.deployment import DeployedModel
from model_deploy.training.progress import Progress
from model_deploy.training.session import RunWriter, open_session


class TrainResult(NamedTuple):
    """The end of a run.

    Attributes:
      global_step: number of steps done, those of earlier runs included.
      total_loss: loss of the last step; None if there was no step left to do.
    """

    global_step: int
    total_loss: float | None


def train(
    model: DeployedModel,
    train_dir: str | os.PathLike[str],
    *,
    max_steps: int | None = None,
    images_per_step: int = 1,
    wait_secs: Any = None,
    log_every_n_steps: int = 10,
    save_interval_secs: float = 600,
    save_summaries_secs: float = 600,
    keep_checkpoints: int = 5,
    master: str = "",
    is_chief: bool = True,
    session_config: Any = None,
) -> TrainResult:
    """Trains `model` in the default graph, from its newest checkpoint on.

    Checkpoints `model.ckpt-<step>` and TensorBoard events go to `train_dir`, at the
    end of the run and in intervals.  Nothing that was there before is deleted; of
    the checkpoints of this run, the newest `keep_checkpoints` are kept.

    Args:
      model: what `deploy` returned, with an optimizer.
      train_dir: folder; made if it does not exist.
      max_steps: number of the last step, counted from the first run on; None to go
        on until the inputs end.
      images_per_step: images in a step over all clones, for the rate that is shown.
      wait_secs: how many seconds a step has waited for its data, a float scalar tensor
        such as that of `inputs.train_batches`; its share of the time is shown.
      log_every_n_steps: steps between two updates of the progress shown.
      save_interval_secs: seconds between checkpoints.
      save_summaries_secs: seconds between summaries.
      keep_checkpoints: how many checkpoints of this run to keep.
      master: address of a TensorFlow server; '' for a session in this process.
      is_chief: whether this process initializes the variables and writes files.
      session_config: a `tf.ConfigProto`; soft placement if not given.

    Returns:
      A `TrainResult`.

    Raises:
      ValueError: if the model has no train op, a number is out of its range, or the
        checkpoint in `train_dir` is one of another model.
      OSError: if `train_dir` cannot be written.
      FloatingPointError: if the loss becomes NaN or infinite.
    """
    _check(model, max_steps, log_every_n_steps, keep_checkpoints)
    folder = os.fspath(train_dir)
    if is_chief:
        check_writable(folder)
    writer = RunWriter(folder, keep_checkpoints) if is_chief else None
    config = session_config or tf.ConfigProto(allow_soft_placement=True)
    global_step = tf.train.get_global_step()
    with tf.control_dependencies([model.train_op]):
        step_after_update = tf.identity(global_step)
    with open_session(folder, master, is_chief, config, writer) as session:
        first_step = int(session.run(global_step))
        fetches = [model.train_op, step_after_update]
        fetches += [] if wait_secs is None else [wait_secs]
        steps = _Steps(session, fetches, model.summary_op, writer)
        save_timer, summary_timer = _Timer(save_interval_secs), _Timer(save_summaries_secs)
        with Progress(first_step, max_steps, images_per_step) as progress:
            step, loss = first_step, None
            try:
                while max_steps is None or step < max_steps:
                    last = max_steps is not None and step + 1 == max_steps
                    step, loss, waits = steps.run(with_summary=last or summary_timer.due())
                    for seconds in waits:
                        progress.add_wait(seconds)
                    if step % log_every_n_steps == 0 or step == max_steps:
                        progress.update(step, loss)
                    if writer is not None and save_timer.due():
                        writer.save(session, step)
            except tf.errors.OutOfRangeError:
                pass  # the inputs have ended
            except FloatingPointError:
                loss = None  # the variables are lost: the last checkpoint stays the newest
                raise
            finally:  # of an interrupted run, too
                if writer is not None:
                    if loss is not None:
                        writer.save(session, step)
                    writer.close()
    return TrainResult(step, loss)


class _Steps:
    """Runs steps; the callables are made once, which halves the cost of a small step."""

    def __init__(self, session: Any, fetches: list[Any], summary_op: Any, writer: Any) -> None:
        self._session = session
        self._writer = writer
        self._plain = session.make_callable(fetches)
        self._with_summary = None
        if writer is not None and summary_op is not None:
            self._with_summary = session.make_callable([*fetches, summary_op])

    def run(self, with_summary: bool) -> tuple[int, float, list[float]]:
        """One step, with the summary of the same batch; returns step, loss and further values."""
        if with_summary and self._with_summary is not None:
            loss, step, *rest, summary = self._with_summary()
            self._writer.add_summary(self._session, summary, int(step))
        else:
            loss, step, *rest = self._plain()
        if not math.isfinite(loss):
            raise FloatingPointError(f"the loss must be finite, got {loss} at step {step}")
        return int(step), float(loss), rest


class _Timer:
    """Says when `seconds` have passed since it last said so."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        if time.monotonic() - self._last < self._seconds:
            return False
        self._last = time.monotonic()
        return True


def check_writable(train_dir: str | os.PathLike[str]) -> None:
    """Makes the folder if needed and tries a file in it.

    Raises:
      OSError: naming the folder, if it cannot be made or written.
    """
    try:
        os.makedirs(train_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=train_dir):
            pass
    except OSError as error:
        raise OSError(
            f"train_dir must be a folder that can be written, got {train_dir}: {error}"
        ) from error


def _check(
    model: DeployedModel, max_steps: int | None, log_every_n_steps: int, keep_checkpoints: int
) -> None:
    if model.train_op is None:
        raise ValueError("model must have a train op, got one deployed without an optimizer")
    counts = {
        "max_steps": max_steps,
        "log_every_n_steps": log_every_n_steps,
        "keep_checkpoints": keep_checkpoints,
    }
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
