"""Where the time of steps goes: marks of a clock in, seconds of each part out."""

import math

import pytest

from model_deploy.training.pace.spending import PARTS, Spending, Spent
from model_deploy.training.steps.report import StepReport

pytestmark = pytest.mark.one_mode

NAN = math.nan


def report(step=1, wait_secs=NAN, marks=(NAN,) * 4, between=None):
    fields = StepReport(step, 0.5, NAN, wait_secs, -1, 0, (0.5,))
    return fields._replace(marks=marks, made_between=between)


@pytest.fixture
def clock(monkeypatch):
    """Sets the times at which the clock is read."""

    def set_times(*times):
        left = iter(times)
        monkeypatch.setattr("time.time", lambda: next(left))

    return set_times


@pytest.mark.parametrize(
    ("by_all_reduce", "wait_secs", "marks", "expected"),
    [
        # The step is from 101 to 109 of 100 to 110: the other 2 s are Python's.
        (False, NAN, (NAN, NAN, NAN, NAN), (0, 10, 0, 0, 0)),
        (False, 3.0, (NAN, NAN, NAN, NAN), (3, 7, 0, 0, 0)),
        (False, NAN, (104, NAN, NAN, NAN), (3, 7, 0, 0, 0)),
        # Asynchronous: variables are there at 103, 1 s after the batch; gradients at 107.
        (False, NAN, (102, 103, 107, NAN), (1, 6, 0, 3, 0)),
        # Synchronous: handed in at 107.5.
        (False, NAN, (102, 103, 107, 107.5), (1, 6, 1.5, 1.5, 0)),
        # By all-reduce sums arrive at 108; nobody knows yet how long the others took.
        (True, NAN, (102, NAN, 105, 108), (1, 6, 3, 0, 0)),
        # Clocks that are set back make nothing negative.
        (False, NAN, (90, 90, 120, 120), (0, 10, 0, 0, 0)),
    ],
)
def test_parts_of_a_step(clock, by_all_reduce, wait_secs, marks, expected):
    """The marks divide a step; what they do not tell is computation, and all parts add up."""
    clock(100, 101, 109, 110)
    spending = Spending(by_all_reduce=by_all_reduce)
    spending.begin(0)
    spending.in_step(True)
    spending.in_step(False)
    spending.add(report(wait_secs=wait_secs, marks=marks))
    found = spending.spent
    assert [getattr(found, part) for part in PARTS] == pytest.approx(expected)
    assert (found.step, found.steps, found.secs) == (1, 1, 10)


def test_between_steps(clock):
    """Waits that are no steps count as waiting, and the work of a saving hook as saving."""
    clock(100, 101, 103, 104, 108, 110)
    spending = Spending()
    spending.begin(0)
    for running in (True, False, True, False):  # a wait of 2 s, and a step
        spending.in_step(running)
    spending.add_saving(2.0)
    spending.add(report())
    assert spending.spent.waiting == 2
    assert spending.spent.saving == pytest.approx(2.0, abs=0.01)
    assert spending.spent.computation == pytest.approx(6.0, abs=0.01)


def test_asynchronous_clones():
    """Steps that are made at the same time count each for itself."""
    spending = Spending()
    spending.begin(0)
    for step in (1, 2):
        spending.add(report(step, marks=(101, NAN, NAN, NAN), between=(100, 104)))
    assert spending.spent == Spent(2, 2, 8, input=2, computation=6)


def test_without_marks():
    """Where ops are deterministic there is no clock, and no part is known."""
    spending = Spending(has_marks=False)
    spending.begin(0)
    spending.add(report(marks=()))
    assert spending.spent.steps == 1
    assert all(math.isnan(getattr(spending.spent, part)) for part in PARTS)


def test_since():
    """The difference of two moments has the later step."""
    assert Spent(7, 5, 3.0, 1.0).since(Spent(4, 3, 1.0)) == Spent(7, 2, 2.0, 1.0)
