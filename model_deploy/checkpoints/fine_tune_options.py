"""`FineTuneOptions`: the settings, each a flag, of a run that starts from a checkpoint."""

import dataclasses
from typing import ClassVar

from model_deploy.commands import Options, option


@dataclasses.dataclass(frozen=True)
class FineTuneOptions(Options):
    """Options for fine-tuning: the checkpoint, what to restore from it, what to train.

    Raises:
      ValueError: as `Options`; for an empty scope, and settings that need a `checkpoint_path`
        without one.
    """

    topic: ClassVar[str] = "checkpoints"

    checkpoint_path: str | None = option(
        None,
        "checkpoint to start from, or a folder, whose newest it is; default: none",
        common=True,
    )
    checkpoint_exclude_scopes: str | None = option(
        None,
        "scopes that are not restored, with commas between; whole parts of names: "
        "LeNet/fc does not hold LeNet/fc4",
    )
    trainable_scopes: str | None = option(
        None, "scopes to train, as in checkpoint_exclude_scopes; default: all"
    )
    ignore_missing_vars: bool = option(
        False, "let variables start anew that the checkpoint does not have"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("checkpoint_exclude_scopes", "trainable_scopes"):
            split_scopes(field, getattr(self, field))
        if self.checkpoint_path is None:
            for field in ("checkpoint_exclude_scopes", "ignore_missing_vars"):
                if getattr(self, field):
                    raise ValueError(
                        f"{field} must come with a checkpoint_path, got "
                        f"{getattr(self, field)!r} without"
                    )


def split_scopes(field: str, text: str | None) -> tuple[str, ...]:
    """Splits the value of an option into scopes, without slashes around them.

    Raises:
      ValueError: if a scope is empty.
    """
    if text is None:
        return ()
    scopes = tuple(scope.strip().strip("/") for scope in text.split(","))
    if not all(scopes):
        raise ValueError(f"{field} must be scopes with commas between, got {text!r}")
    return scopes
