"""The call that makes a step: in TensorFlow's threads or in the calling one."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

# Steps in each way before one is chosen, of which the first ones are not timed.
_TRIALS = 30
_UNTIMED = 10
# Seconds: in longer steps the hand-over between threads is not felt.
_SHORT_SECS = 0.002


class StepCall:
    """Fetches a tensor again and again, in the faster one of two ways.

    TensorFlow hands a step to the threads of its pool, and its end back.  Each hand-over takes
    some 10 us, a good part of a short step.  A short step is faster in the calling thread
    (`RunOptions.inter_op_thread_pool` of -1), where ops do not run side by side, though each
    still uses all threads.  So short steps of a session in this process are timed in both
    ways; what they compute is the same.

    Args:
      session: where to run.
      fetch: a tensor.
      clock: gives the time in seconds.
    """

    def __init__(
        self, session: Any, fetch: Any, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        pooled = session.make_callable(fetch)
        inline = session.make_callable(fetch, accept_options=True)
        options = tf.RunOptions(inter_op_thread_pool=-1)
        self._ways = [pooled, lambda: inline(options=options)]
        self._clock = clock
        self._times: list[list[float]] = [[], []]
        self._chosen = pooled if session.sess_str else None

    def __call__(self) -> Any:
        if self._chosen is not None:
            return self._chosen()
        return self._try()

    def _try(self) -> Any:
        way = 0 if len(self._times[0]) < _TRIALS else 1
        began = self._clock()
        value = self._ways[way]()
        self._times[way].append(self._clock() - began)
        if len(self._times[way]) == _TRIALS:
            pooled_secs, *inline_secs = [
                statistics.median(times[_UNTIMED:]) for times in self._times if times
            ]
            if pooled_secs > _SHORT_SECS:
                self._chosen = self._ways[0]
            elif inline_secs:
                self._chosen = self._ways[int(inline_secs[0] < pooled_secs)]
        return value
