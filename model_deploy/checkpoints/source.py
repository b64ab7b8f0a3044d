"""Where the checkpoint of a run comes from, and what restores it, if it is not damaged."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import tensorflow.compat.v1 as tf

from model_deploy.checkpoints.choosing import raise_if_damaged
from model_deploy.checkpoints.damage import UNREADABLE
from model_deploy.checkpoints.files import check_fits, counts_of_others
from model_deploy.checkpoints.good import GoodCheckpoints
from model_deploy.checkpoints.saving import CheckpointWriter, variables_to_save
from model_deploy.embeddings import moved_variables

_Result = TypeVar("_Result")


class Source(NamedTuple):
    """Where the checkpoint of a run comes from.

    Attributes:
      folder: folder of the run, of which this process is the chief.
      checkpoint: path of the checkpoint to start from; None to start anew.
      resume: the setting with which it was found, see `checkpoint_to_resume`.
    """

    folder: str = ""
    checkpoint: str | None = None
    resume: str = "auto"

    def use(self, read: Callable[[str], _Result], path: str) -> _Result:
        """Calls a function with the newest checkpoint, or if that is damaged with one before it.

        Args:
          read: restores a checkpoint.
          path: path of the newest checkpoint, or of the one to start from.

        Raises:
          DamagedCheckpointError: if no checkpoint is good, or the one that a user has named is not.
          Exception: what the function raises for a checkpoint that is not damaged.
        """
        is_named = self.resume not in ("auto", "never") and path == self.checkpoint
        if not is_named:
            return GoodCheckpoints(self.folder, is_own=True).use(read, path)
        try:
            return read(path)
        except UNREADABLE as error:
            raise_if_damaged("resume", path, error)
            raise


def saver_to_restore(writer: CheckpointWriter, checkpoint: str) -> Any:
    """Returns the `tf.train.Saver` that restores a checkpoint, of whichever layout.

    Makes a new one, in the default graph, for a checkpoint other than that with which the run has
    begun, if it is of other numbers of replicas or parameter servers.

    Args:
      writer: the writer of the run.
      checkpoint: path of the checkpoint.

    Raises:
      ValueError: if the checkpoint is of another model.
    """
    saver = writer.saver_of(checkpoint)
    if saver is not writer.saver:
        return saver
    missing = [name for name, number in counts_of_others(checkpoint).items() if number is None]
    moved = moved_variables(checkpoint)
    if not missing and not moved:
        return saver
    check_fits(checkpoint)
    with tf.device(writer.device):
        return tf.train.Saver(variables_to_save(missing, moved))
