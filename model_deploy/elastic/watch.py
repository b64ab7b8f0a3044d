"""`WorldWatch`: ends the steps of a world when there is another one, and never within an update."""

import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import Cluster, World, close_session, names_of, unreachable

# Seconds between two looks at the file.
POLL_SECS = 0.2
# Seconds that a step under way has to end where a worker is lost, and where none is: the others
# may be in it, or have stopped before it.
_PATIENCE_LOST_SECS = 0.5
_PATIENCE_SECS = 2.0
# Seconds without a step after which workers that cannot be reached are named.
_REPORT_SECS = 5.0
# Seconds that a step with a worker missing may have taken when the run is stopped.
_STOP_SECS = 2.0


class WorldChanged(ConnectionError):  # noqa: N818 - it is no mistake
    """There is another world: the steps of this one are over."""


class WorldWatch:
    """In a `with` block, a thread that watches the file of the world.

    When the file has a later generation no further step begins.  One that is under way gets some
    time to end, and then its session is closed.  An update is never cut short: each step asks
    `gate`, when all that workers exchange has arrived and before the first variable is changed,
    and from then on its session stays open until it has ended.

    Args:
      world: the world.
      cluster: its cluster, as this process sees it.
      read: gives the world in the file, or None while it cannot be read.
      stall_timeout: seconds that a step may wait for workers that cannot be reached.
      report: called with a line.

    Attributes:
      error: why no step can be made any more, or None.
      started: whether all members have had the same values of the variables.
    """

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        read: Callable[[], World | None],
        *,
        stall_timeout: float,
        report: Callable[[str], Any],
    ) -> None:
        self.error: OSError | None = None
        self.started = False
        self._world = world
        self._others = [task for task in cluster.tasks if task != cluster.own]
        self._read = read
        self._stall_timeout = stall_timeout
        self._report = report
        self._lock = threading.Lock()
        self._session: Any = None
        self._began: float | None = None
        self._is_updating = False
        self._is_closing = False
        self._is_stopped: Callable[[], bool] = lambda: False
        self._is_over = False
        self._patience = _PATIENCE_SECS
        self._changed_at = 0.0
        self._reported = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="world_watch", daemon=True)

    @property
    def has_given_up(self) -> bool:
        """Whether it has ended a step, in a world that is not over, as the run is stopped."""
        return self._is_over and self.error is None

    def opened(self, session: Any) -> None:
        """A session is there, in which the members agree on values."""
        with self._lock:
            self._session = session
        self.in_step(True)

    def agreed(self) -> None:
        """All members have the same values."""
        self.started = True
        self.in_step(False)

    def in_step(self, running: bool) -> None:
        """A step begins, or has ended.

        Raises:
          tf.errors.CancelledError: if it must not begin, as there is another world.
        """
        with self._lock:
            self._is_updating = False
            self._began = time.monotonic() if running else None
            if running and self.error is not None:
                self._began = None
                raise tf.errors.CancelledError(None, None, str(self.error))

    def heed(self, is_stopped: Callable[[], bool]) -> None:
        """From now on a step that waits for a worker that is gone ends when the run is stopped."""
        self._is_stopped = is_stopped

    def give_up(self) -> bool:
        """An error has ended the step: no update begins any more; returns whether one had begun."""
        with self._lock:
            self._is_closing = True
            return self._is_updating

    def gate(self) -> None:
        """All that a step needs from others has arrived: it updates the variables.

        Raises:
          RuntimeError: if the step has been given up.
        """
        with self._lock:
            if self._is_closing:
                raise RuntimeError("the step was given up before its update")
            self._is_updating = True

    def __enter__(self) -> "WorldWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_SECS):
            if not self._is_over:
                self._look()
                self._look_for_others()
            elif self._is_time_to_close():
                close_session(self._session)
                return

    def _look(self) -> None:
        world = self._read()
        if world is None or world.generation <= self._world.generation:
            return
        lost = set(self._world.workers) - set(world.workers)
        error = f"world {self._world.generation} is over: there is world {world.generation}"
        self._end(_PATIENCE_LOST_SECS if lost else _PATIENCE_SECS, WorldChanged(error))

    def _look_for_others(self) -> None:
        """Names workers that are gone while the file still has them."""
        began, now = self._began, time.monotonic()
        if began is None or self._is_over:
            return
        stops = self._is_stopped() and now - began >= _STOP_SECS
        if not stops and now - max(began, self._reported) < _REPORT_SECS:
            return
        self._reported = now
        missing = unreachable(self._others)
        if not missing or self._began != began:
            return
        names = names_of(missing)
        if stops:
            self._report(f"the step is given up, without {names}")
            self._end(0.0, None)
            return
        self._report(f"waiting for {names}, or for a world without")
        if now - began >= self._stall_timeout:
            error = (
                "stall_timeout must be long enough for a world without workers that are lost, "
                f"got {self._stall_timeout:g} s with {names} gone"
            )
            self._end(0.0, ConnectionError(error))

    def _end(self, patience: float, error: OSError | None) -> None:
        """No further step is to begin, and one that is under way has so many seconds."""
        with self._lock:
            self.error = error
            self._patience, self._changed_at = patience, time.monotonic()
            self._is_over = True

    def _is_time_to_close(self) -> bool:
        with self._lock:
            now = time.monotonic()
            if self._began is None or self._is_updating:
                return False
            if now - self._changed_at < self._patience:
                return False
            self._is_closing = True
            return True
