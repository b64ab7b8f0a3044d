"""`WorldWatch`: ends the steps of a world when a new one comes, but never within an update."""

import threading
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.cluster import (
    Cluster,
    LostSteps,
    StandStill,
    World,
    close_session,
    names_of,
    unreachable,
)

# Seconds between two looks at the world file.
POLL_SECS = 0.1
# Seconds that a running step may take to end in a world that is over: twice as long as the step
# before it, and within these bounds.  Others may still be in the step, or have stopped before it;
# where a worker is lost it ends only if the lost one had given all that it had to give.
_LEAST_PATIENCE_SECS = 0.1
_PATIENCE_LOST_SECS = 0.5
_PATIENCE_SECS = 2.0
# Seconds between two looks at whether such a step has ended.
_END_POLL_SECS = 0.02
# Seconds that the closing of its session may take: it waits for ever where the chief is gone.
_CLOSE_SECS = 0.5
# Seconds after that in which the step ends, unless TensorFlow has lost it.  An update has as many
# before the closing, and 20 times as many as the longest step.
_LOST_SECS = 10.0
# Seconds without a step after which unreachable workers are reported.
_REPORT_SECS = 5.0
# Seconds after which a step that lacks a worker is given up when the run is being stopped.
_STOP_SECS = 2.0


class WorldChanged(ConnectionError):  # noqa: N818 - not a mistake
    """There is a new world: no more steps are made in this one."""


class WorldWatch:
    """Watches the world file in a thread, inside of a `with` block.

    When the file has a later generation no new step begins.  A running step gets some time to end,
    then its session is closed.  An update is never cut short: each step calls `gate` after all
    values from other workers have arrived and before it changes a variable; from then on its
    session stays open until the step has ended.  On parameter servers a step that TensorFlow has
    lost, for which all workers wait, is ended after `stall_timeout`, see `LostSteps`.  An update
    that is lost in a world that is over is cut short, too: the `Fence` knows whether it was made.

    Args:
      world: the world.
      cluster: the world's cluster, as this process sees it.
      read: returns the world in the file, or None while it is unreadable.
      all_wait: called every few seconds in a long step; returns whether all workers wait so.
      stall_timeout: seconds that a step may wait for unreachable workers, or all for each other.
      report: called with each line to print.

    Attributes:
      error: why no more steps can be made, or None.
      started: whether all workers have agreed on the values of the variables.
    """

    def __init__(
        self,
        world: World,
        cluster: Cluster,
        read: Callable[[], World | None],
        *,
        all_wait: Callable[[], bool],
        stall_timeout: float,
        report: Callable[[str], Any],
    ) -> None:
        self.error: OSError | None = None
        self.started = False
        self._world = world
        self._others = [task for task in cluster.tasks if task != cluster.own]
        watched = self._others if cluster.ps else ()
        self._lost = LostSteps(watched, stall_timeout, report, is_sure=all_wait)
        self._read = read
        self._stall_timeout = stall_timeout
        self._report = report
        self._lock = threading.Lock()
        self._session: Any = None
        self._began: float | None = None
        self._step_secs = 0.0  # of the last step; none has ended yet
        self._is_updating = False
        self._is_closing = False
        self._is_stopped: Callable[[], bool] = lambda: False
        self._is_over = False
        self._patience = _PATIENCE_SECS
        self._changed_at = 0.0
        self._reported = 0.0
        self._still = StandStill()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="world_watch", daemon=True)

    @property
    def has_given_up(self) -> bool:
        """Whether a step was given up because the run is stopped, in a world that is not over."""
        return self._is_over and self.error is None

    def opened(self, session: Any) -> None:
        """Is told of a new session, in which workers first agree on values."""
        with self._lock:
            self._session = session
        self.in_step(True)

    def agreed(self) -> None:
        """Is told that all workers have the same values."""
        self.in_step(False)
        self.started = True

    def in_step(self, running: bool) -> None:
        """Is told that a step begins, or has ended.

        Raises:
          tf.errors.CancelledError: if the step must not begin, as there is a new world.
        """
        with self._lock:
            self._is_updating = False
            now = time.monotonic()
            if self.started and not running and self._began is not None:
                self._step_secs = now - self._began
                self._lost.note(self._step_secs)
            self._began = now if running else None
            if running and self.error is not None:
                self._began = None
                raise tf.errors.CancelledError(None, None, str(self.error))

    def heed(self, is_stopped: Callable[[], bool]) -> None:
        """Sets a function: once it returns True, steps that lack a worker are given up."""
        self._is_stopped = is_stopped

    def give_up(self) -> bool:
        """Forbids updates after an error ended the step; returns whether an update had begun."""
        with self._lock:
            self._is_closing = True
            return self._is_updating

    def gate(self) -> None:
        """Is called in a step when all values from others have arrived, before the update.

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
        while not self._still.wait(self._ended, _END_POLL_SECS if self._is_over else POLL_SECS):
            if not self._is_over:
                self._look()
                self._look_for_others()
            elif self._is_time_to_close():
                close_session(self._session, _CLOSE_SECS)
                if not self._ended.wait(_LOST_SECS) and self._began is not None:
                    self._lost.cut("the step does not end without the others")
                return

    def _look(self) -> None:
        """Ends the world if the file has a later one; a shorter patience if a worker is lost."""
        world = self._read()
        if world is None or world.generation <= self._world.generation:
            return
        lost = set(self._world.workers) - set(world.workers)
        error = f"world {self._world.generation} is over: there is world {world.generation}"
        most = _PATIENCE_LOST_SECS if lost else _PATIENCE_SECS
        patience = min(most, max(_LEAST_PATIENCE_SECS, 2 * self._step_secs))
        self._end(patience, WorldChanged(error))

    def _look_for_others(self) -> None:
        """Reports unreachable workers that are still in the world file."""
        began, now = self._began, time.monotonic()
        if began is None or self._is_over:
            return
        since = max(began, self._still.over_at)
        stops = self._is_stopped() and now - since >= _STOP_SECS
        if not stops and now - max(since, self._reported) < _REPORT_SECS:
            return
        self._reported = now
        missing = unreachable(self._others)
        if self._began != began:
            return
        if not missing:
            self._lost.end(since, now)
            return
        names = names_of(missing)
        if stops:
            self._report(f"the step is given up, without {names}")
            self._end(0.0, None)
            return
        self._report(f"waiting for {names}, or for a world without")
        if now - since >= self._stall_timeout:
            error = (
                "stall_timeout must be long enough for a world without workers that are lost, "
                f"got {self._stall_timeout:g} s with {names} gone"
            )
            self._end(0.0, ConnectionError(error))

    def _end(self, patience: float, error: OSError | None) -> None:
        """Forbids new steps; a running one may take `patience` more seconds."""
        with self._lock:
            self.error = error
            self._patience, self._changed_at = patience, time.monotonic()
            self._is_over = True

    def _is_time_to_close(self) -> bool:
        """Whether a running step has used up its time and has not begun its update, or lost it."""
        with self._lock:
            secs = time.monotonic() - self._changed_at
            if self._began is None or secs < self._patience:
                return False
            if self._is_updating and not self._lost.counts_as_lost(secs, _LOST_SECS):
                return False
            self._is_closing = True
            return True
