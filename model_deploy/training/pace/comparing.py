"""Which worker is slow, and by which part of its steps: numbers in, a name out."""

import collections
import statistics
from collections.abc import Mapping
from typing import NamedTuple

from model_deploy.training.pace.spending import Spent

# A difference counts in a stretch of steps if it is such a part of a step, and so many seconds.
_SHARE_OF_STEP = 0.1
_SECS = 0.002
# A worker is named if the mean of its factors in the last stretches, without the largest ones, is
# so large, and no more once it is small.  No single one counts for more than the largest.
NUM_STRETCHES, _LEFT_OUT = 16, 4
SLOW_FACTOR, _FINE_FACTOR, _LARGEST = 1.5, 1.2, 3.0
# By all-reduce a worker's link is slow if messages over it take so many times as long as the
# others', more by so many seconds, and the exchange is such a part of a step.
_LINK_FACTOR = 3.0
_LINK_SECS = 0.01
_LINK_SHARE = 0.3
# Seconds between two lines about the same worker.
_REPEAT_SECS = 60.0
# What a worker does by itself.
OWN = ("input", "computation", "exchange", "saving")


class Stretch(NamedTuple):
    """What some steps of a worker have taken.

    Attributes:
      spent: the time, and how many steps there were: at least 1.
      input_work: seconds that its pipelines have worked, see `InputWork`; 0 if nobody knows.
      link_secs: seconds for the newest connection to the next worker, after the last one the first;
        0 where none was made.
    """

    spent: Spent
    input_work: float = 0.0
    link_secs: float = 0.0


class Slow(NamedTuple):
    """A worker that took longer than others in a stretch of steps.

    Attributes:
      factor: its own time, as a multiple of the median of the others'.
      excess: seconds per step that each of its parts takes more than the median of the others'.
    """

    factor: float
    excess: Mapping[str, float]


def divided(spent: Mapping[int, Spent]) -> dict[int, Spent]:
    """Tells waiting from the exchange, for replicas by all-reduce.

    An exchange begins when the last replica has its gradients.  So the one that waits least, per
    step, does not wait at all, and its time is that of the exchange itself, for all of them.

    Args:
      spent: by worker; `waiting` is the time from its own gradients to their sums.

    Returns:
      The same, with that time divided into `waiting` and `exchange`.
    """
    known = [each.waiting / each.steps for each in spent.values() if each.steps]
    exchange = min(known, default=0.0) if len(known) > 1 else 0.0
    return {
        worker: each._replace(
            waiting=each.waiting - min(each.waiting, exchange * each.steps),
            exchange=each.exchange + min(each.waiting, exchange * each.steps),
        )
        for worker, each in spent.items()
    }


def slow_workers(
    stretches: Mapping[int, Stretch], *, by_all_reduce: bool = False
) -> dict[int, Slow]:
    """Returns the workers that took longer than others in a stretch of steps that all have made.

    What counts is the time that a worker takes by itself: all but waiting for others.  By
    all-reduce the exchange is everybody's, however slow one link is; there the times of
    connections to neighbours tell whose link it is, with three workers or more.

    Args:
      stretches: by worker.
      by_all_reduce: whether replicas sum gradients by collective ops; `waiting` and `exchange` are
        then not told apart yet.

    Returns:
      The longer ones, by worker, if the difference counts; none if there is only one worker.
    """
    if len(stretches) < 2:
        return {}
    spent = {worker: each.spent for worker, each in stretches.items()}
    own: tuple[str, ...] = OWN
    if by_all_reduce:
        spent = divided(spent)
        own = tuple(part for part in OWN if part != "exchange")
    found = {}
    parts = {worker: _alone(each, stretches[worker], own) for worker, each in spent.items()}
    for worker, each in spent.items():
        slow = _slow(worker, parts, each.secs / each.steps)
        if slow is not None:
            found[worker] = slow
    if by_all_reduce and not found:
        return _slow_links(stretches, spent, parts)
    return found


def _alone(spent: Spent, stretch: Stretch, own: tuple[str, ...]) -> dict[str, float]:
    """Returns seconds per step of each part that a worker would take without waiting for others.

    Its pipelines work while it waits, so of their work some does not show in its steps.
    """
    parts = {part: getattr(spent, part) / spent.steps for part in own}
    others = sum(secs for part, secs in parts.items() if part != "input")
    parts["input"] = max(parts["input"], stretch.input_work / spent.steps - others)
    return parts


def _slow(worker: int, parts: Mapping[int, Mapping[str, float]], of_step: float) -> Slow | None:
    """Returns how slow a worker is, of parts in seconds per step, for steps of some seconds."""
    others = [each for each in parts if each != worker]
    usual = statistics.median(sum(parts[each].values()) for each in others)
    own_secs = sum(parts[worker].values())
    # Not so if a time is NaN.
    if not (
        own_secs >= SLOW_FACTOR * usual and own_secs - usual >= max(_SECS, _SHARE_OF_STEP * of_step)
    ):
        return None
    excess = {
        part: secs - statistics.median(parts[each][part] for each in others)
        for part, secs in parts[worker].items()
    }
    return Slow(own_secs / max(usual, 1e-9), excess)


def _slow_links(
    stretches: Mapping[int, Stretch],
    spent: Mapping[int, Spent],
    parts: Mapping[int, Mapping[str, float]],
) -> dict[int, Slow]:
    """Returns the worker at the slow link, if there is one: messages from it and to it take long.

    In a ring of three or more, each other worker has a neighbour with a good link.  The factor is
    at most that of the messages, and what it would be if others' exchange took no time.
    """
    exchange = statistics.median(each.exchange / each.steps for each in spent.values())
    of_step = statistics.median(each.secs / each.steps for each in spent.values())
    if len(stretches) < 3 or not exchange >= _LINK_SHARE * of_step:
        return {}
    workers = sorted(stretches)
    sent = [stretches[worker].link_secs for worker in workers]
    received = sent[-1:] + sent[:-1]
    secs = [min(each) for each in zip(sent, received, strict=True)]
    slowest = max(range(len(secs)), key=secs.__getitem__)
    usual = statistics.median(secs[:slowest] + secs[slowest + 1 :])
    excess = secs[slowest] - usual
    if secs[slowest] < _LINK_FACTOR * usual or excess < _LINK_SECS:
        return {}
    alone = statistics.median(sum(each.values()) for each in parts.values())
    factor = min(secs[slowest] / max(usual, 1e-9), 1 + exchange / max(alone, 1e-9))
    return {workers[slowest]: Slow(factor, {"exchange": excess})}


class SlowWatch:
    """Names a worker that is slow over some stretches of steps, and says when that is over.

    Steps vary: a count of slow ones would miss a worker of which every second step is slow, and a
    plain mean would name one for a single long step.

    >>> fine, slow = (Stretch(Spent(steps=1, secs=0.5, input=secs)) for secs in (0.25, 0.45))
    >>> watch = SlowWatch()
    >>> [watch.add({0: fine, 1: fine, 2: slow}, now=float(now)) for now in range(13)][10:]
    [[], ['worker 2 is 1.8x slower (input)'], []]

    Args:
      by_all_reduce: as for `slow_workers`.

    Attributes:
      slow: what is slow now: by worker, its factor and its part.
    """

    def __init__(self, *, by_all_reduce: bool = False) -> None:
        self.slow: dict[int, tuple[float, str]] = {}
        self._by_all_reduce = by_all_reduce
        self._found: collections.deque[dict[int, Slow]] = collections.deque(maxlen=NUM_STRETCHES)
        self._named_at: dict[int, float] = {}

    def add(self, stretches: Mapping[int, Stretch], now: float) -> list[str]:
        """Takes in a stretch of steps; returns lines to show.

        Args:
          stretches: by worker.
          now: the time in seconds.
        """
        self._found.append(slow_workers(stretches, by_all_reduce=self._by_all_reduce))
        lines = []
        for worker in {each for found in self._found for each in found} | {*self.slow}:
            slow = [found[worker] for found in self._found if worker in found]
            factors = sorted(min(each.factor, _LARGEST) for each in slow)
            factors = [*[1.0] * (NUM_STRETCHES - len(factors)), *factors]
            mean = statistics.mean(factors[:-_LEFT_OUT])
            if mean >= SLOW_FACTOR:
                lines += self._name(worker, slow, now)
            elif worker in self.slow and mean <= _FINE_FACTOR:
                del self.slow[worker]
                self._named_at.pop(worker)
                lines.append(f"worker {worker} is no longer slower")
        return lines

    def _name(self, worker: int, slow: list[Slow], now: float) -> list[str]:
        """Notes a slow worker; returns a line, unless there was one of late."""
        factor = statistics.median(each.factor for each in slow)
        excess = collections.Counter[str]()
        for each in slow:
            excess.update(each.excess)
        part = max(excess, key=excess.__getitem__)
        self.slow[worker] = factor, part
        if now - self._named_at.get(worker, -_REPEAT_SECS) < _REPEAT_SECS:
            return []
        self._named_at[worker] = now
        return [f"worker {worker} is {factor:.1f}x slower ({part})"]
