"""`Ledger`: attributes each moment of a process's wall time to what it was spent on."""

import collections
import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator

from model_deploy.checkpoints import OneAtATime
from model_deploy.runs import STEPS, TIME_FILE, TimeSpent, read_time_spent, write_time_spent
from model_deploy.training.beginning import own_beginning
from model_deploy.training.replicas.replicas import say

# Seconds between two writings of the file, each of which waits for the disk.
_WRITE_SECS = 5.0
# A process that does not write keeps its time in pieces of so many seconds, the newest hour of it:
# the process that writes may be lost, and this one may have to go on where its file ends.
_PIECE_SECS = 0.5
_MOST_PIECES = 7200


@dataclasses.dataclass
class _Piece:
    """What a process has spent its time on from one moment to another, by kind."""

    begin: float
    end: float
    secs: dict[str, float]

    def add(self, kind: str, secs: float) -> None:
        """Adds seconds to a kind, by which the piece gets no longer."""
        self.secs[kind] = self.secs.get(kind, 0.0) + secs

    def after(self, moment: float) -> "_Piece":
        """Returns the part after a moment, as if each kind was spread evenly."""
        begin = min(max(self.begin, moment), self.end)
        share = (self.end - begin) / (self.end - self.begin) if self.end > self.begin else 0.0
        return _Piece(begin, self.end, {kind: each * share for kind, each in self.secs.items()})


class Ledger:
    """Attributes each moment of this process to one of `runs.KINDS`.

    Each call of `spend`, `made` and `goes_on_from` attributes the time since the last one.  The
    process that writes the files of the run adds its time to that in the file `time.json`.  Time
    between the last moment in the file and the beginning of this process is `down`.

    Args:
      begin: when this process's time begins, in seconds since the epoch; by default when the
        process was started, for the first run in it, and now for others.
      clock: returns the time, in seconds since the epoch.
    """

    def __init__(self, begin: float | None = None, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._mark = own_beginning.take() if begin is None else begin
        self._pieces: collections.deque[_Piece] = collections.deque(maxlen=_MOST_PIECES)
        self._aside: dict[str, float] = {}
        self._highest = 0
        self._repeated_to = 0
        self._folder: str | None = None
        self._kept = TimeSpent()
        self._written = -math.inf
        self._has_failed = False
        self._thread = OneAtATime()

    def spend(self, kind: str) -> None:
        """Attributes the time since the last call to a kind, but for what was set aside."""
        now = self._clock()
        secs = max(0.0, now - self._mark)
        if not self._pieces or now - self._pieces[-1].begin >= _PIECE_SECS:
            self._pieces.append(_Piece(now - secs, now, {}))
        piece = self._pieces[-1]
        aside = sum(self._aside.values())
        if aside > 0:
            fits = min(1.0, secs / aside)
            for each, value in self._aside.items():
                piece.add(each, value * fits)
            self._aside = {}
        piece.add(kind, max(0.0, secs - aside))
        piece.end = self._mark = now

    def set_aside(self, kind: str, secs: float) -> None:
        """Attributes seconds before the next call to another kind than that call does."""
        self._aside[kind] = self._aside.get(kind, 0.0) + secs

    @contextlib.contextmanager
    def aside(self, kind: str) -> Iterator[None]:
        """Sets aside the time of a `with` block."""
        begin = self._clock()
        try:
            yield
        finally:
            self.set_aside(kind, max(0.0, self._clock() - begin))

    def goes_on_from(self, step: int) -> None:
        """Is told of the step from which a session goes on: later ones were made already, or not.

        The time before belongs to the start or, where the session has values of a step, to their
        restoring.
        """
        self.spend("restore" if step > 0 else "start")
        self._repeated_to = self._highest
        self._highest = max(self._highest, step)

    def made(self, step: int, wait_secs: float = 0.0) -> None:
        """Is told of a step that was made, in the time since the last call.

        Args:
          step: its number.
          wait_secs: seconds of waiting for data in it; NaN for unknown.
        """
        if wait_secs > 0:
            self.set_aside("waiting", wait_secs)
        self.spend("repeated" if step <= self._repeated_to else STEPS)
        self._highest = max(self._highest, step)

    def keep_in(self, folder: str | None) -> None:
        """Adds this process's time to that in the folder of the run from now on; None: no more.

        A damaged file is reported by a line, and begins anew.
        """
        self.wait()  # the file is then another process's
        self._folder = folder
        if folder is None:
            return
        try:
            self._kept = read_time_spent(folder)
        except ValueError as error:
            say(f"the time of the run begins anew: {error}")
            self._kept = TimeSpent()
        self._highest = max(self._highest, self._kept.highest_step)
        self._written = -math.inf
        until = self._kept.until
        if until is None:
            return
        begin = self._pieces[0].begin if self._pieces else self._mark
        if begin > until and not self._kept.has_ended:
            self._kept = self._kept.plus({"down": begin - until}, self._highest, begin)
        pieces = [piece.after(until) for piece in self._pieces if piece.end > until]
        self._pieces = collections.deque(pieces, maxlen=_MOST_PIECES)
        self._mark = max(self._mark, until)

    @property
    def spent(self) -> TimeSpent:
        """The time of the run in the file, and that of this process since then."""
        found = _Piece(self._mark, self._mark, {})
        for piece in self._pieces:
            for kind, secs in piece.secs.items():
                found.add(kind, secs)
        return self._kept.plus(found.secs, self._highest, self._mark)

    def close(self, *, has_ended: bool) -> TimeSpent:
        """Writes the file, for the last time in this process, and returns the time of the run.

        Args:
          has_ended: whether the run has come to its end; a run that was stopped has not.
        """
        self._kept = dataclasses.replace(self.spent, has_ended=has_ended)
        self._pieces.clear()
        self.save()
        return self._kept

    def save(self, *, at_once: bool = True) -> None:
        """Writes the file, if this process is the one that does, and if it is time to.

        A file that cannot be written is reported by a line, once: the run needs it for nothing.

        Args:
          at_once: whether it is time, and to wait for the disk; else it is 5 s after the last
            writing, and a thread writes, one time after the other.
        """
        if self._folder is None or not (at_once or self._mark - self._written >= _WRITE_SECS):
            return
        if self._pieces:
            self._kept = self.spent
        self._pieces.clear()
        write = functools.partial(self._write, self._folder, self._kept)
        if at_once:
            self.wait()
            write()
        elif not self._thread.is_running:
            self._thread.start(TIME_FILE, write)
        self._written = self._mark

    def wait(self) -> None:
        """Waits until a thread that writes the file has done so."""
        self._thread.wait()

    def _write(self, folder: str, spent: TimeSpent) -> None:
        try:
            write_time_spent(folder, spent)
        except OSError as error:
            if not self._has_failed:
                say(f"the time of the run is not kept: {error}")
            self._has_failed = True
