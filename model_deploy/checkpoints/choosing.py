"""Finds the checkpoints that an evaluation reads, and restores them one after another."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints.files import describe_misfits, is_checkpoint, step_of
from model_deploy.embeddings import moved_variables


def checkpoints_in(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the checkpoints that the `checkpoint` file of a folder lists, oldest first.

    Checkpoints that are deleted, or still being written, are left out.  A folder that was moved is
    read at its present path.
    """
    folder = os.fspath(folder)
    try:
        state = tf.train.get_checkpoint_state(folder)
    except ValueError:  # the file is empty
        state = None
    if state is None:
        return []
    listed = list(state.all_model_checkpoint_paths) or [state.model_checkpoint_path]
    moved = [os.path.join(folder, os.path.basename(path)) for path in listed]
    return [path for path in moved if is_checkpoint(path)]


def checkpoint_step(path: str) -> int:
    """Returns the global step in a checkpoint, or the number in its name, or 0."""
    reader = tf.train.NewCheckpointReader(path)
    if reader.has_tensor(tf.GraphKeys.GLOBAL_STEP):
        return int(reader.get_tensor(tf.GraphKeys.GLOBAL_STEP))
    return step_of(path) or 0


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
