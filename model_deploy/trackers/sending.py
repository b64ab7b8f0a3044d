"""`Sending`: a thread that sends to one tracker, whose failures end no run."""

import collections
import threading
from collections.abc import Callable
from typing import Any

from model_deploy.commands import line_of, tell
from model_deploy.trackers.tracker import TrackedRun, Tracker

# As many records wait in memory; later ones are dropped.
_MOST = 10_000
# Seconds between two tries to send a record, of which there are two.
_AGAIN_SECS = 60.0


class Sending:
    """Sends records to a tracker in order; says once that it fails, and at the end what is lost.

    Args:
      tracker: the tracker.
      run: the run.
      started: called in the thread with the name by which the tracker knows the run.
    """

    def __init__(self, tracker: Tracker, run: TrackedRun, started: Callable[[str], None]) -> None:
        self._tracker, self._run, self._started = tracker, run, started
        self._records: collections.deque[Callable[[], Any]] = collections.deque()
        self._lost = 0
        self._has_failed = self._is_ending = False
        self._change = threading.Condition()
        # As a daemon it keeps no process alive: a server may not answer for minutes.
        self._thread = threading.Thread(target=self._send_all, name=tracker.name, daemon=True)
        self._thread.start()

    def log(self, step: int, values: dict[str, float]) -> None:
        """Sends finite numbers of a step."""
        self._add(lambda: self._tracker.log(step, values))

    def file(self, path: str, kind: str) -> None:
        """Sends a file or folder."""
        self._add(lambda: self._tracker.file(path, kind))

    def end(self, how: str, secs: float) -> None:
        """Sends what is left, for at most so many seconds; says what is lost."""
        self._add(lambda: self._tracker.end(how))
        with self._change:
            self._is_ending = True
            self._change.notify_all()
        self._thread.join(secs)
        late = f": it did not answer within {secs:g} s" if self._thread.is_alive() else ""
        lost = self._lost + len(self._records)
        if lost:
            tell(f"warning: tracker {self._tracker.name}: {lost} records are not sent{late}")

    def _add(self, record: Callable[[], Any]) -> None:
        with self._change:
            if len(self._records) < _MOST:
                self._records.append(record)
                self._change.notify_all()
            else:
                self._lost += 1

    def _send_all(self) -> None:
        while not self._sent(self._start):
            if self._is_ending:
                return
            self._wait_to_try_again()
        while self._has_next():
            record = self._records[0]
            if not self._sent(record):
                self._wait_to_try_again()
                if not self._sent(record):
                    self._lost += 1
            self._records.popleft()

    def _start(self) -> None:
        known_as = self._tracker.start(self._run)
        try:
            self._started(known_as)
        except OSError as error:  # the run is there all the same
            tell(f"warning: tracker {self._tracker.name}: its run is not noted: {error}")

    def _has_next(self) -> bool:
        """Waits for a record; returns False at the end."""
        with self._change:
            self._change.wait_for(lambda: self._records or self._is_ending)
            return bool(self._records)

    def _wait_to_try_again(self) -> None:
        """Waits a while, or until the end."""
        with self._change:
            self._change.wait_for(lambda: self._is_ending, _AGAIN_SECS)

    def _sent(self, record: Callable[[], Any]) -> bool:
        try:
            record()
        except (Exception, SystemExit) as error:
            if not self._has_failed:
                tell(f"warning: tracker {self._tracker.name} fails: {line_of(error)}; steps go on")
            self._has_failed = True
            return False
        return True
