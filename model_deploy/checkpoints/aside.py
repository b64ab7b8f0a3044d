"""Keeps damaged checkpoints of a run aside, under names that no reader takes for a checkpoint's."""

import contextlib
import os
from collections.abc import Iterable

from model_deploy import file_systems
from model_deploy.checkpoints.files import CHANGES_NAME, named_step, steps_in
from model_deploy.checkpoints.manifest import MANIFEST, files_of

_ASIDE = "damaged"


def set_aside(checkpoint: str) -> None:
    """Renames the files of a checkpoint, and of changes since it: `damaged.<name>`.

    Nothing is deleted or overwritten: a second one of the same name is `damaged-2.<name>`.

    Args:
      checkpoint: path of a whole checkpoint, or of changes.

    Raises:
      OSError: if a file cannot be renamed.
    """
    of_changes = changes_after(checkpoint) if not is_of_changes(checkpoint) else []
    for each in (*of_changes, checkpoint):
        # The manifest last: with it the rest is found again if this process is killed here.
        for path in (*files_of(each), f"{each}{MANIFEST}"):
            with contextlib.suppress(FileNotFoundError):
                file_systems.replace(path, _unused(path))


def changes_after(checkpoint: str) -> list[str]:
    """Returns the paths of changes of later steps than a whole checkpoint's, in rising order."""
    folder, step = os.path.dirname(checkpoint), named_step(checkpoint)
    return [
        os.path.join(folder, f"{CHANGES_NAME}-{each}")
        for each in steps_in(folder, CHANGES_NAME)
        if each > step
    ]


def is_of_changes(checkpoint: str) -> bool:
    """Whether a checkpoint is one of changes, by its name."""
    return os.path.basename(checkpoint).startswith(f"{CHANGES_NAME}-")


def aside_in(folder: str) -> Iterable[str]:
    """Returns the names of files in a folder that were set aside."""
    return file_systems.names_in(folder, f"{_ASIDE}*.*")


def _unused(path: str) -> str:
    folder, name = os.path.split(path)
    number = 1
    while True:
        start = _ASIDE if number == 1 else f"{_ASIDE}-{number}"
        found = os.path.join(folder, f"{start}.{name}")
        if not file_systems.exists(found):
            return found
        number += 1
