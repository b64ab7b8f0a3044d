"""`OfRun`: options of a command about a run, which take defaults from the run's own options."""

import dataclasses
from typing import Any, ClassVar, TypeVar

from model_deploy import training
from model_deploy.commands import option, saved_options

_Options = TypeVar("_Options", bound="OfRun")


@dataclasses.dataclass(frozen=True)
class OfRun(training.ClassifierOptions):
    """Options whose defaults are those saved by a run.

    Raises:
      ValueError: as `Options`; if neither a run nor a checkpoint is named.
    """

    short_help: ClassVar[bool] = True

    train_dir: str | None = option(
        None, "folder of a run; its settings stand in for flags", topic="run", common=True
    )
    checkpoint_path: str | None = option(
        None,
        "checkpoint, or a folder for its newest one; default: train_dir",
        topic="run",
        common=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.source:
            raise ValueError("train_dir or checkpoint_path must be given, got neither")

    @property
    def source(self) -> str:
        """The checkpoint to read, or the folder for its newest one."""
        return self.checkpoint_path or self.train_dir or ""

    @property
    def source_flag(self) -> str:
        """The flag that names `source`."""
        return "checkpoint_path" if self.checkpoint_path else "train_dir"

    @classmethod
    def of_run(cls: type[_Options], train_dir: str, **settings: Any) -> _Options:
        """Returns options for a run, like the command with `--train_dir`.

        Args:
          train_dir: the folder of the run, whose `options.yaml` gives defaults.
          **settings: fields that override these.

        Raises:
          ValueError: for an invalid option.
          OSError: if `options.yaml` cannot be read.
        """
        return cls(**{**saved_options(cls, train_dir), "train_dir": train_dir, **settings})
