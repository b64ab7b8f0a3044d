"""Lists the checkpoints of a run: step, size, what they hold, whether they are good."""

import datetime
import os
from collections.abc import Sequence
from typing import NamedTuple

from model_deploy import file_systems
from model_deploy.checkpoints.aside import aside_in, is_of_changes
from model_deploy.checkpoints.best import BEST_DIR
from model_deploy.checkpoints.damage import Damage, full_damage, manifest_of, note_on_manifest
from model_deploy.checkpoints.files import (
    CHANGES_NAME,
    CHECKPOINT_NAME,
    is_checkpoint,
    named_step,
    step_of,
    steps_in,
)
from model_deploy.checkpoints.good import listing_of
from model_deploy.checkpoints.manifest import (
    MANIFEST,
    Manifest,
    contents_of,
    files_of,
    with_manifests,
)
from model_deploy.commands import aligned

_UNITS = ("B", "KB", "MB", "GB", "TB")


class Found(NamedTuple):
    """A checkpoint that was read in full.

    Attributes:
      path: its path.
      size: bytes of its index and data.
      manifest: its manifest; None without one.
      note: a line if its manifest is damaged, or missing beside those of others; or ''.
      damage: what is wrong with it; None if nothing is.
    """

    path: str
    size: int
    manifest: Manifest | None
    note: str
    damage: Damage | None

    @property
    def is_good(self) -> bool:
        """Whether the checkpoint, and its manifest if it has one, are as they were written."""
        has_manifest = file_systems.is_file(f"{self.path}{MANIFEST}")
        return self.damage is None and (self.manifest is not None or not has_manifest)


def checkpoints_found(folder: str) -> list[Found]:
    """Reads all checkpoints of a folder in full: whole ones, changes, the best one.

    Args:
      folder: folder of a run, on any file system of TensorFlow.

    Returns:
      The checkpoints in rising order of steps, the best one last.

    Raises:
      OSError: if a file cannot be read.
    """
    paths = {*listing_of(folder).newest_first}
    for kind in (CHECKPOINT_NAME, CHANGES_NAME):
        paths |= {os.path.join(folder, f"{kind}-{step}") for step in steps_in(folder, kind)}
        paths |= {*with_manifests(folder, kind)}
    found = [_found(path) for path in sorted(paths, key=lambda path: (named_step(path), path))]
    best = os.path.join(folder, BEST_DIR)
    return found + (checkpoints_found(best) if file_systems.is_folder(best) else [])


def listing(folder: str, found: Sequence[Found]) -> str:
    """Returns the table of a folder's checkpoints, and lines about what is wrong.

    Args:
      folder: the folder.
      found: its checkpoints.
    """
    rows = [["checkpoint", "step", "size", "holds", "made", ""]]
    rows += [_row(folder, each) for each in found]
    lines = aligned(rows, left=(0, 3, 4, 5))
    wrong = listing_of(folder).wrong
    if wrong:
        lines.append(wrong)
    lines += [each.note for each in found if each.note]
    aside = list(aside_in(folder))
    if aside:
        lines.append(f"kept aside: {', '.join(aside)}")
    return "\n".join(lines)


def _found(path: str) -> Found:
    size = sum(file_systems.facts_of(each).size for each in files_of(path))
    return Found(path, size, manifest_of(path), note_on_manifest(path), full_damage(path))


def _row(folder: str, found: Found) -> list[str]:
    manifest = found.manifest
    made = ""
    if manifest is not None:
        made = datetime.datetime.fromtimestamp(manifest.made).strftime("%Y-%m-%d %H:%M:%S")
    step = manifest.step if manifest else step_of(found.path)
    name = os.path.relpath(found.path, folder) if file_systems.is_local(folder) else found.path
    return [
        name,
        "" if step is None else f"{step:,}",
        _sized(found.size),
        _holds(found),
        made,
        _state(found),
    ]


def _state(found: Found) -> str:
    if found.damage is not None:
        return f"damaged: {found.damage.file.rpartition('/')[2]} {found.damage.wrong}"
    return "good" if found.manifest else "good by TensorFlow's own sums"


def _holds(found: Found) -> str:
    """Describes what a checkpoint holds, by its manifest or else by its index."""
    if found.manifest is not None:
        holds = found.manifest.holds
    elif found.damage is None and is_checkpoint(found.path):
        holds = contents_of(found.path)
    else:
        return ""
    parts = [f"{holds['variables']:,} variables ({holds['values']:,} values)"]
    parts += [f"{holds[kind]:,} {kind}" for kind in ("slots", "tables") if holds[kind]]
    if is_of_changes(found.path):
        parts = ["changes", *parts]
    return ", ".join(parts)


def _sized(size: float) -> str:
    for unit in _UNITS:
        if size < 1000 or unit == _UNITS[-1]:
            return f"{size:.3g} {unit}" if size < 1000 else f"{size:,.0f} {unit}"
        size /= 1000
    return ""
