"""`Every`, when something at intervals is due; `TimedHook`, how long a hook takes."""

import time
from collections.abc import Callable
from typing import Any


class Every:
    """An interval that is due every `steps` steps and every `secs` seconds, whichever comes first.

    Args:
      steps: due at multiples of this number; None for no step rule.
      secs: due so many seconds after the last time; None for no time rule.
      first_step: number of steps made before.

    >>> every = Every(steps=10, first_step=17)
    >>> [step for step in range(18, 41) if every.take(step)]
    [20, 30, 40]
    """

    def __init__(
        self, *, steps: int | None = None, secs: float | None = None, first_step: int = 0
    ) -> None:
        self._steps = steps
        self._secs = secs
        self._last_step = first_step
        self._last_time = time.monotonic()

    def due(self, step: int) -> bool:
        """Whether the interval is over at `step`, also if steps were skipped."""
        if self._steps is not None and step // self._steps > self._last_step // self._steps:
            return True
        return self._secs is not None and time.monotonic() - self._last_time >= self._secs

    def done(self, step: int) -> None:
        """Restarts the interval."""
        self._last_step = step
        self._last_time = time.monotonic()

    def take(self, step: int) -> bool:
        """Whether the interval is over; restarts it if so."""
        if not self.due(step):
            return False
        self.done(step)
        return True


class TimedHook:
    """Calls a hook that has a method `due`, and tells how long its `after_run` takes.

    Args:
      hook: the hook.
      *told: functions that are called with the seconds, after each `after_run`.
    """

    def __init__(self, hook: Any, *told: Callable[[float], None]) -> None:
        self._hook = hook
        self._told = told
        self.due, self.before_run = hook.due, hook.before_run

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Calls the hook's."""
        begin = time.perf_counter()
        try:
            self._hook.after_run(run_context, run_values)
        finally:
            for tell in self._told:
                tell(time.perf_counter() - begin)
