"""`OfRun`: settings of a command about a run, most of which the run itself has saved."""

import dataclasses
from typing import Any, ClassVar, TypeVar

from model_deploy import training
from model_deploy.commands import option, saved_options

_Options = TypeVar("_Options", bound="OfRun")


@dataclasses.dataclass(frozen=True)
class OfRun(training.ClassifierOptions):
    """Settings for which those of a run stand in where they are not given.

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
        """The checkpoint, or the folder for its newest one."""
        return self.checkpoint_path or self.train_dir or ""

    @property
    def source_flag(self) -> str:
        """The flag that names `source`."""
        return "checkpoint_path" if self.checkpoint_path else "train_dir"

    @classmethod
    def of_run(cls: type[_Options], train_dir: str, **settings: Any) -> _Options:
        """The settings for a run, as the command with `--train_dir` has them.

        Args:
          train_dir: the folder of the run; what its `options.yaml` says counts.
          **settings: more fields, which count more.

        Raises:
          ValueError: for a setting that breaks a rule.
          OSError: if the file cannot be read.
        """
        return cls(**{**saved_options(cls, train_dir), "train_dir": train_dir, **settings})
