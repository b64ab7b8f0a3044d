"""Takes the newest good checkpoint of a folder, and says in one line which were damaged."""

import functools
import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from model_deploy.checkpoints.aside import changes_after, set_aside
from model_deploy.checkpoints.damage import (
    UNREADABLE,
    Damage,
    DamagedCheckpointError,
    damage_behind,
    note_on_manifest,
    quick_damage,
)
from model_deploy.checkpoints.files import CHECKPOINT_NAME, is_checkpoint, named_step, steps_in
from model_deploy.checkpoints.manifest import with_manifests
from model_deploy.checkpoints.state_file import STATE_FILE, read_state, write_state
from model_deploy.commands import tell

_Result = TypeVar("_Result")


class Listing(NamedTuple):
    """Checkpoints of a folder that were complete at some time; some may be damaged.

    Attributes:
      newest_first: their paths.
      wrong: what is wrong with the file `checkpoint`; '' if nothing is.
    """

    newest_first: list[str]
    wrong: str = ""


def listing_of(folder: str) -> Listing:
    """Finds the checkpoints of a folder, by the file `checkpoint`, and by their manifests.

    One that has no manifest and is not listed, beside others, may be half written.  If the file
    `checkpoint` is damaged or missing, those with a manifest are taken; and where none has one, as
    other programs write them, those that have an index file, which is written last.
    """
    try:
        state, wrong = read_state(folder), ""
    except ValueError as error:
        state, wrong = None, str(error)
    known = set(with_manifests(folder))
    if state is not None:
        # What is newer than the newest one was given up, by the user or by an earlier run.
        older = {*state.listed, *known}
        older = {each for each in older if named_step(each) < named_step(state.newest)}
        return Listing([state.newest, *sorted(older, key=named_step, reverse=True)])
    found = sorted(known, key=named_step) or [
        os.path.join(folder, f"{CHECKPOINT_NAME}-{step}") for step in steps_in(folder)
    ]
    if found and not wrong:
        wrong = f"{os.path.join(folder, STATE_FILE)} is missing"
    return Listing(found[::-1], wrong)


class GoodCheckpoints:
    """The checkpoints of a folder, without those that are damaged.

    Args:
      folder: the folder.
      is_own: whether this process is the chief of the run in that folder.  Then what is damaged is
        set aside, and the file `checkpoint` names the one that is taken.
    """

    def __init__(self, folder: str, *, is_own: bool = False) -> None:
        self._folder = folder
        self._is_own = is_own
        self._damaged: dict[str, Damage] = {}
        self._changes: list[Damage] = []

    def newest(self) -> str | None:
        """Returns the newest checkpoint that is not damaged as far as is known; None without any.

        Says in one line what is wrong with those before it.

        Raises:
          DamagedCheckpointError: if there are checkpoints, but no good one.
        """
        listing = listing_of(self._folder)
        for path in listing.newest_first:
            if path not in self._damaged and (found := quick_damage(path)) is not None:
                self._damaged[path] = found
            if path not in self._damaged:
                self._take(path, listing)
                return path
        if not listing.newest_first:
            return None
        wrong = "; ".join(map(str, self._damaged.values()))
        rule, way_out = "the folder must hold a good checkpoint", ""
        if self._is_own:
            rule = "train_dir must hold a good checkpoint"
            way_out = "; to start anew, choose another train_dir"
        raise DamagedCheckpointError(f"{rule}, got {self._folder}, where {wrong}{way_out}")

    def reject(self, path: str, error: Exception) -> bool:
        """Looks closely at a checkpoint that could not be restored; returns whether it is damaged.

        In the run's own folder it looks at changes since that checkpoint, too.
        """
        if self._is_own:
            for changes in changes_after(path):
                if (found := damage_behind(changes, error)) is not None:
                    self._changes.append(found)
                    return True
        if (found := damage_behind(path, error)) is None:
            return False
        self._damaged[path] = found
        return True

    def use(self, read: Callable[[str], _Result], first: str) -> _Result:
        """Calls a function with the newest good checkpoint, and with the next if it is damaged.

        Args:
          read: reads a checkpoint.
          first: path of the checkpoint to begin with, as `newest` has returned it.

        Returns:
          What the function returns.

        Raises:
          DamagedCheckpointError: as `newest`.
          Exception: what the function raises for a checkpoint that is not damaged.
        """
        path = first
        while True:
            try:
                return read(path)
            except UNREADABLE as error:
                if not self.reject(path, error) or (following := self.newest()) is None:
                    raise
                path = following

    def _take(self, path: str, listing: Listing) -> None:
        """Says what is wrong with others; in the run's own folder sets them aside."""
        before = [each for each in listing.newest_first if each in self._damaged]
        damaged = [self._damaged[each] for each in before] + self._changes
        wrong = [*([listing.wrong] if listing.wrong else []), *map(str, damaged)]
        if wrong:
            done = f"going on from {path}" if self._is_own else f"{path} is taken"
            if damaged and self._is_own:
                done = f"{self._set_aside(damaged)}, {done}"
            say_once(f"{'; '.join(wrong)}: {done}")
        if wrong and self._is_own:
            good = [each for each in listing.newest_first if each not in self._damaged]
            write_state(self._folder, [each for each in good[::-1] if is_checkpoint(each)])
        self._changes = []
        if note := note_on_manifest(path):
            say_once(note)

    def _set_aside(self, damaged: list[Damage]) -> str:
        try:
            for each in damaged:
                set_aside(each.checkpoint)
        except OSError as error:
            return f"not kept aside ({error})"
        return "kept aside as damaged.*"


@functools.cache
def say_once(line: str) -> None:
    """Prints a line, to stderr, unless this process has printed it."""
    tell(line)
