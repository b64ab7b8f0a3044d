"""The call that makes a step: in TensorFlow's threads or in the calling one."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from model_deploy import internals

# Steps in each way before one is chosen, of which the first ones are not timed.
_TRIALS = 30
_UNTIMED = 10
# Seconds: in longer steps the hand-over between threads is not felt.
_SHORT_SECS = 0.002


class StepCall:
    """Fetches a tensor again and again, in the faster one of two ways.

    TensorFlow hands a step to the threads of its pool, and its end back.  Each hand-over takes
    some 10 us, a good part of a short step.  A short step is faster in the calling thread, see
    `internals.inline_callable`, where ops do not run side by side, though each still uses all
    threads.  So short steps of a session in this process are timed in both ways; what they
    compute is the same.

    Args:
      session: where to run.
      fetch: a tensor of any shape; a call gives its value, a NumPy array of that shape.
      clock: gives the time in seconds.
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
        began = self._clock()
        value = self._ways[-1]()
        self._times[-1].append(self._clock() - began)
        if len(self._times[-1]) == _TRIALS:
            self._choose()
        return value

    def _choose(self) -> None:
        """Takes the faster way, unless the other one is still to be tried."""
        secs = [statistics.median(times[_UNTIMED:]) for times in self._times]
        if len(secs) == 1 and secs[0] <= _SHORT_SECS:
            self._ways.append(internals.inline_callable(self._session, self._fetch))
            self._times.append([])
        else:
            self._chosen = self._ways[secs.index(min(secs))]
