"""Finds the checkpoints that an evaluation reads, and restores them one after another."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints.damage import (
    UNREADABLE,
    Damage,
    DamagedCheckpointError,
    damage_behind,
    note_on_manifest,
    quick_damage,
)
from model_deploy.checkpoints.files import describe_misfits, is_checkpoint, named_step
from model_deploy.checkpoints.good import GoodCheckpoints, say_once
from model_deploy.checkpoints.manifest import files_of, with_manifests
from model_deploy.checkpoints.state_file import read_state
from model_deploy.embeddings import moved_variables

_Result = TypeVar("_Result")


def checkpoints_in(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the checkpoints that the `checkpoint` file of a folder lists, oldest first.

    Checkpoints that are deleted, or still being written, are left out.  A folder that was moved is
    read at its present path.  If that file is damaged or missing, those with a manifest are taken.
    """
    folder = os.fspath(folder)
    try:
        state = read_state(folder)
    except ValueError as error:
        say_once(f"{error}: checkpoints are found by their manifests")
        state = None
    listed = sorted(with_manifests(folder), key=named_step) if state is None else state.listed
    return [path for path in listed if is_checkpoint(path)]


def find_checkpoint(checkpoint_path: str) -> str:
    """Returns the checkpoint with this name, or the newest good one in a folder with this name.

    Raises:
      ValueError: if there is none, in either of TensorFlow's formats; naming the file, if all in
        the folder are damaged, or the one that is named.
    """
    return with_checkpoint(checkpoint_path, lambda path: path)


def with_checkpoint(named: str, read: Callable[[str], _Result]) -> _Result:
    """Calls a function with the checkpoint of a name, or the newest good one of a folder.

    Args:
      named: path of a checkpoint, or of a folder.
      read: reads a checkpoint, given its path.

    Raises:
      DamagedCheckpointError: naming the damaged file, if the named checkpoint, or all in the
        folder, are damaged.
      ValueError: if there is none.
    """
    path = named.removesuffix(".index")
    if not is_checkpoint(path) and file_systems.is_folder(path):
        good = GoodCheckpoints(path)
        newest = good.newest()
        if newest is None:
            raise ValueError(
                f"checkpoint_path must be a folder with checkpoints and the file `checkpoint` "
                f"that lists them, or the name of one, got {named}"
            )
        return good.use(read, newest)
    if not files_of(path) and quick_damage(path) is not None:
        raise ValueError(
            f"checkpoint_path must be a checkpoint such as DIR/model.ckpt-1000, or a folder with "
            f"checkpoints, got {named}"
        )
    check_undamaged("checkpoint_path", path)
    with naming_damage("checkpoint_path", path):
        return read(path)


def check_undamaged(field: str, checkpoint: str) -> None:
    """Checks a checkpoint that a user has named, by its manifest.

    Raises:
      DamagedCheckpointError: naming the field, and the file that is damaged.
    """
    if (found := quick_damage(checkpoint)) is not None:
        raise DamagedCheckpointError(_rule(field, found))
    if note := note_on_manifest(checkpoint):
        say_once(note)


@contextlib.contextmanager
def naming_damage(field: str, checkpoint: str) -> Iterator[None]:
    """Looks closely at a checkpoint that a user has named, if a `with` block cannot read it.

    Raises:
      DamagedCheckpointError: naming the field, and the file that is damaged.
      Exception: the block's own error, if the checkpoint is not damaged.
    """
    try:
        yield
    except UNREADABLE as error:
        if (found := damage_behind(checkpoint, error)) is not None:
            raise DamagedCheckpointError(_rule(field, found)) from error
        raise


def _rule(field: str, damage: Damage) -> str:
    return f"{field} must be a whole checkpoint, got {damage.checkpoint}: {damage}"


def checkpoint_step(path: str) -> int:
    """Returns the global step in a checkpoint, or the number in its name, or 0."""
    reader = tf.train.NewCheckpointReader(path)
    if reader.has_tensor(tf.GraphKeys.GLOBAL_STEP):
        return int(reader.get_tensor(tf.GraphKeys.GLOBAL_STEP))
    return named_step(path)


class Restorer:
    """Restores the same variables from one checkpoint after another.

    Args:
      variables: the variables of the default graph, of any shapes, by their names in a checkpoint.
        The global step, an integer scalar, may be missing there: published checkpoints have none.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = {name: v for name, v in variables.items() if name != "global_step"}
        self._saver = tf.train.Saver(self._variables)
        self._savers: dict[frozenset[tuple[str, tuple[int, ...]]], Any] = {}
        self._set_step = None
        if "global_step" in variables:
            step = variables["global_step"]
            self._new_step = tf.placeholder(step.dtype.base_dtype, [])
            self._set_step = tf.assign(step, self._new_step)

    def restore(self, session: Any, path: str) -> int:
        """Restores a checkpoint; returns its global step.

        Raises:
          ValueError: naming the first variables that are missing or of another shape.
          tf.errors.OpError: if it cannot be read.
        """
        with session.graph.as_default():
            saver = self._saver_of(path)
        saver.restore(session, path)
        step = checkpoint_step(path)
        if self._set_step is not None:
            session.run(self._set_step, {self._new_step: step})
        return step

    def _saver_of(self, path: str) -> Any:
        """Returns what restores a checkpoint: one for each layout, as it may add ops to the graph.

        Raises:
          ValueError: as `restore`.
        """
        shapes = tf.train.NewCheckpointReader(path).get_variable_to_shape_map()
        layout = frozenset((name, tuple(shape)) for name, shape in shapes.items())
        if layout not in self._savers:
            moved = moved_variables(path)
            moved = {name: moved[name] for name in self._variables if name in moved}
            others = {name: v for name, v in self._variables.items() if name not in moved}
            wrong = describe_misfits(path, others)
            if wrong:
                raise ValueError(
                    f"the checkpoint must be one of this model, got {path}, where {wrong}"
                )
            saver = tf.train.Saver({**others, **moved}) if moved else self._saver
            self._savers[layout] = saver
        return self._savers[layout]
