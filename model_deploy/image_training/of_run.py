"""`OfRun`: settings of a command about a run, most of which the run itself has saved."""

import dataclasses
from typing import Any, ClassVar, TypeVar

from model_deploy import training
from model_deploy.commands import saved_options

_Options = TypeVar("_Options", bound="OfRun")


@dataclasses.dataclass(frozen=True)
class OfRun(training.ClassifierOptions):
    """Settings for which those of a run stand in where they are not given."""

    short_help: ClassVar[bool] = True

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
