"""`StepCall`: makes a step in TensorFlow's threads or the calling thread, whichever is faster."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from model_deploy import internals

# Number of steps to try in each way before choosing; the first of them are not timed.
_TRIALS = 30
_UNTIMED = 10
# Seconds: longer steps do not gain from avoiding the hand-over between threads.
_SHORT_SECS = 0.002


class StepCall:
    """Fetches a tensor repeatedly, in the faster of two ways.

    TensorFlow hands a step to its thread pool and back.  Each hand-over takes some 10 us, a good
    part of a short step.  In the calling thread (see `internals.inline_callable`) ops run one after
    the other, though each may still use all threads.  So short steps of a session in this process
    are timed in both ways, which compute the same.

    Args:
      session: the session.
      fetch: a tensor of any shape; a call returns its value, a NumPy array.
      clock: returns the time in seconds.
    """

    def __init__(
        self, session: Any, fetch: Any, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        pooled = session.make_callable(fetch)
        self._session = session
        self._fetch = fetch
        self._clock = clock
        self._ways = [pooled]
        self._times: list[list[float]] = [[]]
        self._chosen = pooled if session.sess_str else None

    def __call__(self) -> Any:
        if self._chosen is not None:
            return self._chosen()
        return self._try()

    def _try(self) -> Any:
        """Makes a step in the way that is being timed."""
        began = self._clock()
        value = self._ways[-1]()
        self._times[-1].append(self._clock() - began)
        if len(self._times[-1]) == _TRIALS:
            self._choose()
        return value

    def _choose(self) -> None:
        """Chooses the faster way, or begins to time the second one."""
        secs = [statistics.median(times[_UNTIMED:]) for times in self._times]
        if len(secs) == 1 and secs[0] <= _SHORT_SECS:
            self._ways.append(internals.inline_callable(self._session, self._fetch))
            self._times.append([])
        else:
            self._chosen = self._ways[secs.index(min(secs))]
