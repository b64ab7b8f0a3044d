"""Where the checkpoint of a run comes from, if it is not damaged."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from model_deploy.checkpoints.choosing import naming_damage
from model_deploy.checkpoints.good import GoodCheckpoints

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
        with naming_damage("resume", path):
            return read(path)
