"""`KeptCheckpoints`: the files of a run's newest checkpoints, and the file that names them."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.manifest import remove_manifest, write_manifest
from model_deploy.checkpoints.state_file import STATE_FILE, write_state
from model_deploy.checkpoints.storage import is_lost_connection, is_of_file, reason_of
from model_deploy.cluster import run_unless_refused
from model_deploy.commands import tell


class KeptCheckpoints:
    """Writes checkpoints `<name>-<step>` to a folder, and keeps the newest of those it has written.

    TensorFlow writes all values under temporary names and renames the files; only then the file
    that names the newest checkpoint is replaced, and the manifest comes last.  So a run that is
    killed or meets a full disk while saving leaves the previous checkpoint usable.

    Args:
      folder: the folder.
      name: first part of the names.
      keep: how many to keep.
      state_file: name of the file that names them.
      paths: paths of checkpoints that another object has written in the same run, oldest first;
        the list is kept, and has those of this object too.
    """

    def __init__(
        self,
        folder: str,
        name: str,
        keep: int,
        state_file: str = STATE_FILE,
        paths: list[str] | None = None,
    ) -> None:
        self._folder, self._name, self._keep = folder, name, keep
        self._state_file = state_file
        self._paths = [] if paths is None else paths
        self._old: list[str] = []  # not yet removed
        self._was_there = file_systems.is_folder(folder)

    def path(self, step: int) -> str:
        """Returns the path of the checkpoint of a step."""
        return os.path.join(self._folder, f"{self._name}-{step}")

    def write(
        self,
        saver: Any,
        session: Any,
        step: int,
        facts: Mapping[str, Any] | None = None,
        *,
        in_thread: bool = False,
    ) -> str:
        """Writes a checkpoint; returns its path.

        Args:
          saver: a `tf.train.Saver`.
          session: the session of the values.
          step: their step.
          facts: plain values to note in the manifest.
          in_thread: whether the caller is a thread beside the one that makes steps.

        Raises:
          OSError: if it cannot be written; its files are removed, and those before are there.
          tf.errors.OpError: if a process of the cluster is lost.
        """
        path = self.path(step)
        before: set[str] | None = None
        try:
            self._make_folder()
            before = set(file_systems.paths_starting_with(path))
            remove_manifest(path)
            save(saver, session, path, in_thread=in_thread)
            self._note(path)
            write_manifest(path, step, facts)
        except (tf.errors.OpError, OSError) as error:
            if is_lost_connection(error) and not is_of_file(error, path):
                raise
            if before is not None:
                _remove_if_possible(set(file_systems.paths_starting_with(path)) - before)
            raise OSError(reason_of(error, path)) from error
        return path

    def clear(self) -> None:
        """Removes all that this object has written."""
        self._old += self._paths
        self._paths.clear()
        self._remove_old()

    def _make_folder(self) -> None:
        if file_systems.is_local(self._folder) and not file_systems.is_folder(self._folder):
            file_systems.make_folders(self._folder)
            self._paths.clear()
            self._old = []
            if self._was_there:
                tell(f"{self._folder} was removed: it is made anew")
        self._was_there = True

    def _note(self, path: str) -> None:
        """Names a new checkpoint as the newest, and removes what is too old."""
        paths = [*(each for each in self._paths if each != path), path]
        write_state(self._folder, paths[-self._keep :], self._state_file)
        self._paths[:] = paths[-self._keep :]
        self._old += paths[: -self._keep]
        self._remove_old()

    def _remove_old(self) -> None:
        for path in self._old:
            _remove_if_possible(file_systems.paths_starting_with(f"{path}."))
        self._old = [each for each in self._old if file_systems.paths_starting_with(f"{each}.")]


def save(saver: Any, session: Any, path: str, *, in_thread: bool = False) -> None:
    """Writes the files of a checkpoint by a `tf.train.Saver`, and no other file.

    Args:
      saver: the saver, whose `save` would not say in which thread its ops run.
      session: the session of the values.
      path: path of the checkpoint.
      in_thread: whether the ops run in the calling thread.  Else the op that writes would take
        one of the few threads in which steps are made, all of them on one core.
    """
    names = saver.as_saver_def()
    options = None
    if in_thread and not session.sess_str:
        options = tf.RunOptions(inter_op_thread_pool=-1)
    feeds = {names.filename_tensor_name: path}
    run_unless_refused(lambda: session.run(names.save_tensor_name, feeds, options))


def _remove_if_possible(paths: Any) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            file_systems.remove(path)
