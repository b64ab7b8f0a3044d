"""Writes checkpoints so that the previous one stays usable whatever happens."""

import functools
import math
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems, internals
from model_deploy.checkpoints.best_value import BEST_FILE, best_value
from model_deploy.checkpoints.changes import (
    MOST_STEPS,
    ChangesWriter,
    changes_since,
    check_changes,
    rows_variables,
)
from model_deploy.checkpoints.damage import first_line
from model_deploy.checkpoints.files import (
    CHECKPOINT_NAME,
    counts_of_others,
    is_checkpoint,
    step_of,
)
from model_deploy.checkpoints.manifest import remove_manifest, write_manifest
from model_deploy.cluster import is_refusal, run_unless_refused
from model_deploy.commands import write_checked
from model_deploy.embeddings import growing_shards, moved_variables
from model_deploy.optimization import current_value
from model_deploy.updating import replica_counts, shared_out

BEST_DIR = "best"


class CheckpointWriter:
    """Writes the checkpoints `model.ckpt-<step>` of one run.

    TensorFlow writes all values under temporary names, renames the files, and only then replaces
    the file `checkpoint`, which names the newest.  So a run that is killed or meets a full disk
    while saving leaves the previous checkpoint usable.

    Args:
      train_dir: folder to write to.
      keep: how many checkpoints to keep; only checkpoints of this run are ever deleted.
      device: device that writes and reads files: in a cluster, the chief's CPU.
      first: path of the checkpoint that the run starts from, or None.
      by_servers: whether each task writes, and reads, the variables that it has; all must see
        `train_dir`.
      increments: how many checkpoints of changes follow a whole one.
      num_replicas: number of replicas that make steps by themselves; 1 for steps made together.

    Attributes:
      device: as given.
      saver: the `tf.train.Saver`.
      newest: path of the newest checkpoint, the restored one included, or None.
    """

    def __init__(
        self,
        train_dir: str,
        keep: int,
        device: str = "",
        first: str | None = None,
        *,
        by_servers: bool = False,
        increments: int = 0,
        num_replicas: int = 1,
    ) -> None:
        if by_servers and file_systems.is_local(train_dir):
            train_dir = os.path.abspath(train_dir)  # servers may have another working directory
        self.device = device
        self._increments, self._num_changes = increments, 0
        self._path = os.path.join(train_dir, CHECKPOINT_NAME)
        self._saved_step: int | None = None
        self.newest: str | None = None

        # The graph is in the events file; writing it with each checkpoint would take seconds.
        def new_saver(variables: Sequence[Any], kept: int = keep) -> Any:
            return tf.train.Saver(
                variables, max_to_keep=kept, save_relative_paths=True, sharded=by_servers
            )

        with tf.device(device):
            self.saver = new_saver(variables_to_save())
            others = counts_of_others(first) if first else {}
            missing = [name for name, number in others.items() if number is None]
            moved = moved_variables(first) if first else {}
            self._of_first = self.saver
            if missing or moved:
                self._of_first = new_saver(variables_to_save(missing, moved))
            self._changes: ChangesWriter | None = None
            if increments and growing_shards():
                check_changes()
                of_rows = rows_variables()
                rest = [each for each in variables_to_save() if _name(each) not in of_rows]
                self._changes = ChangesWriter(train_dir, new_saver, rest, num_replicas)
        self._first = first

    def saver_of(self, checkpoint: str) -> Any:
        """Returns the `tf.train.Saver` that restores a checkpoint."""
        return self._of_first if checkpoint == self._first else self.saver

    def save(self, session: Any, step: int) -> str:
        """Writes `model.ckpt-<step>`, unless it was the last one written; returns its path.

        Raises:
          OSError: if it cannot be written; the previous one is still there.
        """
        path = f"{self._path}-{step}"
        if step == self._saved_step and is_checkpoint(path):  # else it was set aside
            return path
        before = set(file_systems.paths_starting_with(path))
        try:
            _save(self.saver, session, self._path, step)
        except (tf.errors.OpError, OSError) as error:
            if is_lost_connection(error):
                raise
            for name in set(file_systems.paths_starting_with(path)) - before:
                file_systems.remove(name)
            raise OSError(
                f"checkpoint {path} could not be written, the newest one is "
                f"{self.newest or 'none'}: {first_line(error)}"
            ) from error
        self._saved_step, self.newest = step, path
        self._num_changes = 0
        if self._changes is not None:
            self._changes.remove()
        return path

    def _may_follow(self, whole: str, step: int) -> bool:
        """Whether changes may follow a whole checkpoint, as opposed to another whole one."""
        steps = step - (step_of(whole) or 0)
        return self._num_changes < self._increments and steps <= MOST_STEPS

    def _save_changes(self, writer: ChangesWriter, session: Any, step: int, whole: str) -> None:
        """Writes `changes.ckpt-<step>`.

        Raises:
          OSError: if it cannot be written; the previous changes are still there.
        """
        if step == self._saved_step:
            return
        try:
            run_unless_refused(lambda: writer.save(session, step, whole))
        except (tf.errors.OpError, OSError) as error:
            if is_lost_connection(error):
                raise
            raise OSError(
                f"changes of step {step} could not be written, the newest whole checkpoint is "
                f"{whole}: {first_line(error)}"
            ) from error
        self._num_changes += 1

    def restore_changes(self, session: Any, checkpoint: str) -> None:
        """Restores what changed since a whole checkpoint of this run, after that was restored."""
        own = os.path.dirname(os.path.abspath(self._path))
        if os.path.dirname(os.path.abspath(checkpoint)) != own:
            return  # one that `resume` names, of another run
        writer, changes = self._changes, changes_since(checkpoint)
        if writer is not None and changes is not None:
            run_unless_refused(lambda: writer.restore(session, changes.path))

    def try_to_save(self, session: Any, step: int) -> None:
        """Like `save`, or what changed; a failure is a warning, and the next save tries again."""
        try:
            if self._changes and self.newest and self._may_follow(self.newest, step):
                self._save_changes(self._changes, session, step, self.newest)
            else:
                self.save(session, step)
        except OSError as error:
            print(f"warning: {error}", file=sys.stderr, flush=True)


def _save(
    saver: Any, session: Any, path: str, step: int, facts: Mapping[str, Any] | None = None
) -> None:
    """Writes `<path>-<step>` by a `tf.train.Saver`, without the graph; its manifest is the last."""
    remove_manifest(f"{path}-{step}")
    run_unless_refused(lambda: saver.save(session, path, global_step=step, write_meta_graph=False))
    write_manifest(f"{path}-{step}", step, facts)


def variables_to_save(
    missing: Collection[str] = (), moved: Mapping[str, Any] | None = None
) -> list[Any]:
    """Returns what `tf.train.Saver` should save: all variables, as a checkpoint should have them.

    Tables that are trained by rows, and their slots, are saved as the dense optimizer has them,
    with what their rows have missed.  Counts of replicas are restored for other numbers of
    replicas, too.

    Reads the collections `GLOBAL_VARIABLES` and `SAVEABLE_OBJECTS`, and that of tables.

    Args:
      missing: names of counts to restore from the global step.
      moved: by name of a variable what restores it from another layout, see `moved_variables`.

    Returns:
      Variables of any shapes, and objects that stand for some of them.
    """
    counts, moved = replica_counts(), moved or {}

    def to_save(variable: Any) -> Any:
        name = variable.op.name
        if name in moved:
            return moved[name]
        if name not in counts:
            value = current_value(variable)
            return variable if value is None else internals.saved_as(variable, value)
        convert = functools.partial(shared_out, num_replicas=variable.shape[0])
        saved_as = tf.GraphKeys.GLOBAL_STEP if name in missing else name
        return internals.restored_by(variable, convert, {saved_as: variable.dtype.base_dtype})

    others = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)
    return [*map(to_save, tf.global_variables()), *others]


def _name(saved: Any) -> str:
    """Returns the name of a variable, or of another object for a saver."""
    return str(saved.name).partition(":")[0]


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
        with tf.device(device):
            self._saver = tf.train.Saver(
                variables_to_save(), max_to_keep=1, save_relative_paths=True
            )
        self.value: float | None = best_value(self._folder, metric)

    def offer(self, session: Any, step: int, value: float) -> None:
        """Saves the variables if `value` is better than all earlier values; NaN is not.

        Raises:
          OSError: if they cannot be written.
        """
        if math.isnan(value) or not self._is_better(value):
            return
        file_systems.make_folders(self._folder)
        path = os.path.join(self._folder, CHECKPOINT_NAME)
        try:
            _save(self._saver, session, path, step, {self._metric: value})
        except tf.errors.OpError as error:
            if is_lost_connection(error):
                raise
            reason = first_line(error)
            raise OSError(f"checkpoint {path}-{step} could not be written: {reason}") from error
        self.value = value
        write_checked(os.path.join(self._folder, BEST_FILE), {"step": step, self._metric: value})

    def _is_better(self, value: float) -> bool:
        if self.value is None:
            return True
        return value < self.value if self._falls else value > self.value


def report_unfinished(train_dir: str) -> None:
    """Prints the names of incomplete checkpoint files that a killed run left; none is ever read."""
    for name in file_systems.names_in(train_dir, f"{CHECKPOINT_NAME}-*temp*"):
        path = os.path.join(train_dir, name)
        print(f"not used: {path}, left by a run that ended while it was saving", file=sys.stderr)


def is_lost_connection(error: BaseException) -> bool:
    """Whether an error says that a process of the cluster is lost or was restarted.

    A session that is closed while it runs raises `CancelledError`; a restarted parameter server has
    lost its variables, which raises `FailedPreconditionError`.
    """
    lost = (
        tf.errors.UnavailableError,
        tf.errors.AbortedError,
        tf.errors.CancelledError,
        tf.errors.FailedPreconditionError,
    )
    return isinstance(error, lost) and not is_refusal(error)
