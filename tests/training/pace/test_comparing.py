"""Who is slow: series of numbers in, a name out."""

import math
import random

import pytest

from model_deploy.training.pace.comparing import (
    SlowWatch,
    Stretch,
    divided,
    slow_workers,
)
from model_deploy.training.pace.spending import Spent

pytestmark = pytest.mark.one_mode


def stretch(*, steps=3, work=0.0, link=0.0, **per_step):
    """Steps whose parts take some seconds each."""
    parts = {part: steps * secs for part, secs in per_step.items()}
    spent = Spent(step=steps, steps=steps, secs=sum(parts.values()), **parts)
    return Stretch(spent, steps * work, link)


USUAL = stretch(input=0.01, computation=0.08, exchange=0.01)


@pytest.mark.parametrize(
    ("slow", "factor", "part"),
    [
        # The others take 0.1 s a step by themselves.
        ({"input": 0.09, "computation": 0.08, "exchange": 0.01}, 1.8, "input"),
        ({"input": 0.01, "computation": 0.23, "exchange": 0.01}, 2.5, "computation"),
        ({"input": 0.01, "computation": 0.08, "exchange": 0.11}, 2.0, "exchange"),
        ({"computation": 0.08, "saving": 0.12}, 2.0, "saving"),
        ({"input": 0.01, "computation": 0.089, "exchange": 0.01}, None, None),  # 9% more
        ({"computation": 0.05, "waiting": 1.0}, None, None),  # for others
    ],
)
@pytest.mark.parametrize("others", [1, 2, 7])
def test_a_slow_worker(slow, factor, part, others):
    """A worker's own time counts, at least 10% of a step; the part is what it has more of."""
    stretches = {**dict.fromkeys(range(others), USUAL), 9: stretch(**slow)}
    found = slow_workers(stretches)
    if factor is None:
        assert 9 not in found
    else:
        assert [*found] == [9]
        assert found[9].factor == pytest.approx(factor)
        assert max(found[9].excess, key=found[9].excess.get) == part


@pytest.mark.parametrize(
    "stretches",
    [
        pytest.param({0: stretch(computation=9)}, id="one worker"),
        pytest.param({0: USUAL, 1: stretch(computation=math.nan)}, id="unknown"),
        pytest.param(
            {0: stretch(computation=0.001), 1: stretch(computation=0.0025)}, id="1.5 ms more"
        ),
        pytest.param(
            {w: stretch(computation=0.01 * (w + 1), exchange=0.5) for w in (0, 1)},
            id="2% of a step",
        ),
    ],
)
def test_nobody_is_slow(stretches):
    """A worker alone, unknown times, milliseconds and hundredths of a step name nobody."""
    assert slow_workers(stretches) == {}


@pytest.mark.parametrize(("work", "factor"), [(0.1, None), (0.04, 2.5)])
def test_inputs_that_work_beside_the_step(work, factor):
    """Of synchronous workers one waits for its input, 0.1 s, and the others for that worker: it is
    slow if their pipelines work less for a batch, and not if they work as long.
    """
    last = stretch(input=0.1, work=0.1)
    others = stretch(waiting=0.1, work=work)
    found = slow_workers({0: others, 1: others, 2: last})
    expected = {2: pytest.approx(factor)} if factor else {}
    assert {w: each.factor for w, each in found.items()} == expected


def test_waiting_is_told_from_the_exchange():
    """By all-reduce the replica that comes last does not wait: its time is that of the exchange."""
    replicas = {0: stretch(computation=0.1, waiting=0.3), 1: stretch(computation=0.3, waiting=0.1)}
    spent = divided({w: each.spent for w, each in replicas.items()})
    assert [each.waiting for each in spent.values()] == pytest.approx([3 * 0.2, 0])
    assert [each.exchange for each in spent.values()] == pytest.approx([3 * 0.1] * 2)


@pytest.mark.parametrize(
    ("links", "slow"),
    [
        ([0.001, 0.001, 0.001], None),
        ([0.06, 0.05, 0.06], None),  # all are busy
        ([0.001, 0.05, 0.06], 2),  # from 1 to 2, and from 2 to 0
        ([0.05, 0.001, 0.06], 0),
        ([0.05, 0.05, 0.001, 0.001], 1),
        ([0.05, 0.001, 0.001], None),  # one direction of one message
        ([0.001, 0.006, 0.006], None),  # milliseconds
        ([0.001, 0.0, 0.06], None),
    ],
)
@pytest.mark.parametrize("exchange", [0.1, 0.01])
def test_a_slow_link(links, slow, exchange):
    """By all-reduce the exchange is everybody's; connections from and to a worker tell its link, if
    the exchange is a good part of a step.
    """
    stretches = {
        w: stretch(computation=0.05, waiting=exchange, link=secs) for w, secs in enumerate(links)
    }
    found = slow_workers(stretches, by_all_reduce=True)
    assert [*found] == ([slow] if slow is not None and exchange == 0.1 else [])
    for each in found.values():  # 0.05 s, and 0.1 s more
        assert each.factor == pytest.approx(3.0)
        assert [*each.excess] == ["exchange"]


SLOW = stretch(input=0.11, computation=0.08, exchange=0.01)


def _said(watch, series):
    return [watch.add({0: USUAL, 1: USUAL, 2: each}, now) for now, each in series]


def test_lines():
    """A worker is named for a mean of 1.5 over the last 16 stretches without the largest 4, again
    after a minute, and no more for one of 1.2.
    """
    line, over = ["worker 2 is 2.0x slower (input)"], ["worker 2 is no longer slower"]
    # Of n slow stretches n - 4 are in the mean of 12, 1 + (n - 4) / 12: 1.5 for 10, 1.2 for 6.
    series = [*[SLOW, USUAL] * 5, *[SLOW] * 6, *[USUAL] * 10]
    said = _said(SlowWatch(), list(enumerate(series)))
    slow = [sum(each is SLOW for each in series[max(0, i - 15) : i + 1]) for i in range(26)]
    assert [i for i, lines in enumerate(said) if lines == line] == [slow.index(10)]
    assert [i for i, lines in enumerate(said) if lines == over] == [
        i for i in range(16, 26) if slow[i] == 6
    ][:1]
    again = _said(SlowWatch(), [(10.0 * i, SLOW) for i in range(18)])
    assert [i for i, lines in enumerate(again) if lines == line] == [9, 15]


@pytest.mark.parametrize("num_workers", [3])
def test_an_hour_of_noise(num_workers):
    """In 36,000 steps, an hour of steps of 0.1 s, workers that are equally fast are not named:
    parts vary by 30%, one step in 20 takes up to 5 times as long, the chief saves every 20 steps.
    """
    numbers = random.Random(num_workers)
    watch = SlowWatch()
    for step in range(36_000):
        stretches = {}
        for worker in range(num_workers):
            secs = {part: numbers.lognormvariate(-4, 0.3) for part in ("input", "exchange")}
            hiccup = numbers.choice([1] * 19 + [numbers.uniform(1, 5)])
            secs["computation"] = hiccup * numbers.lognormvariate(-3, 0.3)
            secs["saving"] = 0.5 if worker == 0 and step % 20 == 0 else 0.0
            stretches[worker] = stretch(steps=1, **secs)
        assert watch.add(stretches, float(step)) == []
