"""Writes checkpoints so that the previous one stays usable whatever happens."""

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.all_reduce import rows_of_replicas
from model_deploy.checkpoints.background import OneAtATime
from model_deploy.checkpoints.changes import (
    MOST_STEPS,
    ChangesWriter,
    changes_since,
    check_changes,
    rows_variables,
)
from model_deploy.checkpoints.copies import Copies
from model_deploy.checkpoints.files import (
    CHECKPOINT_NAME,
    check_fits,
    counts_of_others,
    describe_misfits,
    is_checkpoint,
    named_step,
)
from model_deploy.checkpoints.kept import KeptCheckpoints
from model_deploy.checkpoints.saved import variables_to_save
from model_deploy.checkpoints.storage import NotSavedError, Storage
from model_deploy.cluster import run_unless_refused
from model_deploy.commands import tell
from model_deploy.embeddings import growing_shards, moved_variables

# What the writer writes, in words.
_CHECKPOINTS = "checkpoints"
# Seconds between two tries at the end of a run.
_RETRY_SECS = 1.0


class CheckpointWriter:
    """Writes the checkpoints `model.ckpt-<step>` of one run.

    A run that is killed or meets a full disk while saving leaves the previous checkpoint usable,
    see `KeptCheckpoints`.

    Args:
      train_dir: folder to write to.
      keep: how many checkpoints to keep; only checkpoints of this run are ever deleted.
      device: device that writes and reads files: in a cluster, the chief's CPU.
      by_servers: whether each task writes, and reads, the variables that it has; all must see
        `train_dir`.
      increments: how many checkpoints of changes follow a whole one.
      num_replicas: number of replicas that make steps by themselves; 1 for steps made together.
      in_background: whether `save_soon` writes while steps go on.
      saved: paths of checkpoints of this run that are kept, see `KeptCheckpoints`.

    Attributes:
      device: as given.
      saver: the `tf.train.Saver`.
      newest: path of the newest checkpoint, the restored one included, or None.
      storage: knows whether files can be written.
    """

    def __init__(
        self,
        train_dir: str,
        keep: int,
        device: str = "",
        *,
        by_servers: bool = False,
        increments: int = 0,
        num_replicas: int = 1,
        in_background: bool = False,
        saved: list[str] | None = None,
    ) -> None:
        if by_servers and file_systems.is_local(train_dir):
            train_dir = os.path.abspath(train_dir)  # servers may have another working directory
        self.device = device
        self.storage = Storage()
        self._increments, self._num_changes = increments, 0
        self._kept = KeptCheckpoints(train_dir, CHECKPOINT_NAME, keep, paths=saved)
        self._thread = OneAtATime()
        self._saved_step: int | None = None
        self.newest: str | None = None

        # The graph is in the events file; writing it with each checkpoint would take seconds.
        def new_saver(variables: Sequence[Any]) -> Any:
            return tf.train.Saver(variables, save_relative_paths=True, sharded=by_servers)

        self._new_saver = new_saver
        self._of_other_layouts: dict[str, Any] = {}
        to_save = variables_to_save()
        with tf.device(device):
            self.saver = new_saver(to_save)
            self._changes: ChangesWriter | None = None
            if increments and growing_shards():
                check_changes()
                of_rows = rows_variables()
                rest = [each for each in to_save if _name(each) not in of_rows]
                self._changes = ChangesWriter(train_dir, new_saver, rest, num_replicas)
            self._copies: Copies | None = None
            self._copies_of_changes: Copies | None = None
            if in_background:
                self._copies = Copies(to_save, new_saver, "whole", device)
                if self._changes is not None:
                    saved = self._changes.saved
                    self._copies_of_changes = Copies(saved, new_saver, "changes", device)

    def saver_of(self, checkpoint: str) -> Any:
        """Returns the `tf.train.Saver` that restores a checkpoint, of whichever layout.

        For one of other numbers of replicas or parameter servers it is made, in the default graph,
        when it is first asked for.

        Raises:
          ValueError: if the checkpoint is of another model.
        """
        if checkpoint in self._of_other_layouts:
            return self._of_other_layouts[checkpoint]
        missing = [name for name, number in counts_of_others(checkpoint).items() if number is None]
        moved = moved_variables(checkpoint)
        rows = {_name(each): each for each in rows_of_replicas()}
        has_rows = not rows or not describe_misfits(checkpoint, rows)
        if not missing and not moved and has_rows:
            return self.saver
        check_fits(checkpoint)
        if not has_rows:
            tell(
                f"{checkpoint} has no values of as many workers: all begin with those of the chief"
            )
        with tf.device(self.device):
            saver = self._new_saver(variables_to_save(missing, moved, rows=has_rows))
        self._of_other_layouts[checkpoint] = saver
        return saver

    def save(self, session: Any, step: int) -> str:
        """Writes `model.ckpt-<step>`, unless it was the last one written; returns its path.

        Raises:
          OSError: if it cannot be written; the previous one is still there.
        """
        self._thread.wait()
        if not self._is_saved(step):
            self._write(step, functools.partial(self._write_whole, self.saver, session))
        return self._kept.path(step)

    def try_to_save(self, session: Any, step: int, *, whole: bool = False) -> str | None:
        """Like `save`, or what changed; a failure is told, and the next save tries again.

        Args:
          session: the session.
          step: its global step.
          whole: whether a whole checkpoint is needed.

        Returns:
          The path of a whole checkpoint; None for changes, and after a failure.
        """
        self._thread.wait()
        with self.storage.trying(_CHECKPOINTS):
            if whole or not self._may_follow(step):
                return self.save(session, step)
            if not self._is_saved(step) and self._changes is not None:
                self._changes.note_base(session, self.newest or "")
                write = functools.partial(self._write_changes, self._changes, self._changes.saver)
                self._write(step, functools.partial(write, session))
        return None

    def save_soon(self, session: Any, step: int) -> None:
        """Like `try_to_save`, while steps go on; skipped while the last one is being written.

        Returns as soon as all values are copied, in memory.  Where the copies do not fit there, it
        says so and waits until they are written.
        """
        if self._copies is None:
            self.try_to_save(session, step)
            return
        if self._is_saved(step) or not self._thread.is_free(f"the checkpoint of step {step}"):
            return
        write, copies, changes = self._write_whole, self._copies, self._changes
        if changes is not None and self._copies_of_changes is not None and self._may_follow(step):
            write, copies = functools.partial(self._write_changes, changes), self._copies_of_changes
            changes.note_base(session, self.newest or "")
        if not copies.fit():
            self.try_to_save(session, step)
            return
        run_unless_refused(lambda: copies.take(session))
        self._thread.start(
            f"the checkpoint of step {step}",
            lambda: self._write_copies(copies, session, step, write),
        )

    def _write_copies(
        self, copies: Copies, session: Any, step: int, write: Callable[..., str]
    ) -> None:
        """Writes copies, in a thread; a lost connection is left to the steps to notice."""
        with session.graph.as_default(), contextlib.suppress(tf.errors.OpError, RuntimeError):
            try:
                with self.storage.trying(_CHECKPOINTS):
                    saving = functools.partial(write, copies.saver, session, in_thread=True)
                    self._write(step, saving)
            finally:
                copies.free(session)

    def save_last(
        self, session: Any, step: int, wait_secs: float, stops: Callable[[], bool]
    ) -> None:
        """Saves the last step of a run, trying for a while.

        Args:
          session: the session.
          step: the step.
          wait_secs: seconds to wait until it can be written.
          stops: says whether to stop waiting.

        Raises:
          NotSavedError: saying which steps are lost.
        """
        end, waits = time.monotonic() + wait_secs, False
        while self.try_to_save(session, step, whole=True) is None:
            if time.monotonic() >= end or stops():
                last = named_step(self.newest or "")
                raise NotSavedError(
                    f"steps {last + 1} to {step} are lost: {self.storage.reason(_CHECKPOINTS)}; "
                    f"wait_for_storage_secs says how long to try at the end, got {wait_secs:g}"
                )
            if not waits:
                tell(f"waiting for storage, at most {wait_secs:g} s")
            waits = True
            time.sleep(_RETRY_SECS)

    @property
    def is_overdue(self) -> bool:
        """Whether it is time to try again after a failure, whatever the interval."""
        return self.storage.is_overdue(_CHECKPOINTS)

    def wait(self) -> None:
        """Waits until a checkpoint that is being written is there, or has failed."""
        self._thread.wait()

    def end(self) -> None:
        """Ends the writing of a session that is closed."""
        self._thread.end()

    def restore_changes(self, session: Any, checkpoint: str) -> None:
        """Restores what changed since a whole checkpoint of this run, after that was restored."""
        own = os.path.dirname(os.path.abspath(self._kept.path(0)))
        if os.path.dirname(os.path.abspath(checkpoint)) != own:
            return  # one that `resume` names, of another run
        writer, changes = self._changes, changes_since(checkpoint)
        if writer is not None and changes is not None:
            run_unless_refused(lambda: writer.saver.restore(session, changes.path))

    def _is_saved(self, step: int) -> bool:
        """Whether this writer has written a step whole, and it was not set aside since."""
        return step == self._saved_step and is_checkpoint(self._kept.path(step))

    def _may_follow(self, step: int) -> bool:
        """Whether changes may follow the last checkpoint, as opposed to another whole one."""
        if self._changes is None or self.newest is None:
            return False
        steps = step - named_step(self.newest)
        return self._num_changes < self._increments and steps <= MOST_STEPS

    def _write(self, step: int, write: Callable[[int], str]) -> None:
        """Writes one checkpoint.

        Raises:
          OSError: if it cannot be written, naming it and the newest whole one.
        """
        try:
            write(step)
        except OSError as error:
            raise OSError(
                f"checkpoint {self._kept.path(step)} could not be written, the newest one is "
                f"{self.newest or 'none'}: {error}"
            ) from error

    def _write_whole(self, saver: Any, session: Any, step: int, *, in_thread: bool = False) -> str:
        self.newest = self._kept.write(saver, session, step, in_thread=in_thread)
        self._saved_step, self._num_changes = step, 0
        if self._changes is not None:
            self._changes.kept.clear()
        return self.newest

    def _write_changes(
        self,
        changes: ChangesWriter,
        saver: Any,
        session: Any,
        step: int,
        *,
        in_thread: bool = False,
    ) -> str:
        path = changes.kept.write(saver, session, step, in_thread=in_thread)
        self._num_changes += 1
        return path


def _name(saved: Any) -> str:
    """Returns the name of a variable, or of another object for a saver."""
    return str(saved.name).partition(":")[0]


def report_unfinished(train_dir: str) -> None:
    """Prints the names of incomplete checkpoint files that a killed run left; none is ever read."""
    for name in file_systems.names_in(train_dir, f"{CHECKPOINT_NAME}-*temp*"):
        path = os.path.join(train_dir, name)
        print(f"not used: {path}, left by a run that ended while it was saving", file=sys.stderr)
