"""`Spending`: where the time of this process's steps goes, added up over the run."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from model_deploy.training.steps.report import StepReport


class Spent(NamedTuple):
    """Seconds that steps have taken, in all and by part; the parts add up to the whole.

    Attributes:
      step: number of the last step.
      steps: number of this process's own steps.
      secs: from the end of one step to the end of the next, over all steps.
      input: waiting for batches.
      computation: everything else that the process does by itself, Python included.
      waiting: waiting for other workers.
      exchange: sending gradients, and receiving variables or sums.
      saving: checkpoints, and the evaluations that the chief makes with them.
    """

    step: int = 0
    steps: int = 0
    secs: float = 0.0
    input: float = 0.0
    computation: float = 0.0
    waiting: float = 0.0
    exchange: float = 0.0
    saving: float = 0.0

    def since(self, other: "Spent") -> "Spent":
        """Returns what was spent since another time; `step` is the later one."""
        _, steps, *secs = (a - b for a, b in zip(self, other, strict=True))
        return Spent(self.step, int(steps), *secs)


# The parts of a step, in the order in which they are shown.
PARTS = ("input", "computation", "waiting", "exchange", "saving")


class Spending:
    """Divides the time of each step into its parts.

    The parts are told apart by the step's marks, see `Marks`.  With all-reduce a replica cannot
    tell waiting for the others from the exchange itself: `waiting` is then the time for both, and
    whoever knows all replicas divides it, see `comparing.divided`.  Where ops are deterministic
    steps have no marks, and the parts are NaN.

    Args:
      by_all_reduce: whether replicas sum gradients by collective ops.
      has_marks: whether steps have marks.

    Attributes:
      spent: what was spent so far; replaced as a whole after each step, for readers in threads.
    """

    def __init__(self, *, by_all_reduce: bool = False, has_marks: bool = True) -> None:
        self.spent = Spent()
        if not has_marks:
            self.spent = Spent(0, 0, 0.0, *[math.nan for _ in PARTS])
        self._by_all_reduce = by_all_reduce
        self._began = 0.0
        self._last = 0.0
        self._in_step: tuple[float, float] | None = None
        self._others = 0.0
        self._saved = 0.0

    def begin(self, step: int) -> None:
        """Is told that a session begins, after a step."""
        self._last = time.time()
        self._in_step, self._others, self._saved = None, 0.0, 0.0
        self.spent = self.spent._replace(step=step)

    def around(self, in_step: Callable[[bool], None]) -> Callable[[bool], None]:
        """Returns a function that is told what `in_step` is, and tells that one."""

        def call(running: bool) -> None:
            self.in_step(running)
            in_step(running)

        return call

    def in_step(self, running: bool) -> None:
        """Is told that a step, or a wait for others between steps, begins or has ended."""
        now = time.time()
        if running:
            self._began = now
            return
        if self._in_step is not None:  # no step was reported: it was a wait
            self._others += self._in_step[1] - self._in_step[0]
        self._in_step = self._began, now

    def add(self, report: StepReport) -> None:
        """Counts a step, when its hooks have been called."""
        if report.made_between is None:
            now = time.time()
            began, ended = self._in_step or (self._last, now)
            secs, self._last = now - self._last, now
        else:  # of one of several asynchronous clones
            began, ended = report.made_between
            secs = ended - began
        parts = _parts(report, began, ended, self._by_all_reduce)
        waiting, saving = parts.waiting + self._others, min(self._saved, secs)
        known = parts.input + waiting + parts.exchange + saving
        self._in_step, self._others, self._saved = None, 0.0, 0.0
        before = self.spent
        self.spent = Spent(
            report.step,
            before.steps + 1,
            before.secs + secs,
            before.input + parts.input,
            before.computation + max(0.0, secs - known),
            before.waiting + waiting,
            before.exchange + parts.exchange,
            before.saving + saving,
        )

    def add_saving(self, secs: float) -> None:
        """Counts time of the current step as saving."""
        self._saved += secs


class _StepParts(NamedTuple):
    input: float
    exchange: float
    waiting: float


def _parts(report: StepReport, began: float, ended: float, by_all_reduce: bool) -> _StepParts:
    """Returns the seconds of a step's parts that its marks tell."""
    batches, variables, computed, exchanged = report.marks or (math.nan,) * 4
    waited = report.wait_secs
    if math.isnan(waited):
        waited = 0.0 if math.isnan(batches) else batches - began
    waited = _within(waited, ended - began)
    exchange = waiting = 0.0
    if not math.isnan(variables):
        exchange = _within(variables - began - waited, ended - began)
    if not math.isnan(computed):
        if math.isnan(exchanged):  # an update of its own
            exchange += _within(ended - computed, ended - began)
        elif by_all_reduce:
            waiting = _within(exchanged - computed, ended - began)
        else:  # handed in, and then waiting for the update
            exchange += _within(exchanged - computed, ended - began)
            waiting = _within(ended - exchanged, ended - began)
    return _StepParts(waited, exchange, waiting)


def _within(secs: float, most: float) -> float:
    return min(max(0.0, secs), most)
