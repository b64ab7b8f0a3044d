"""What a run shows: lines or a bar, with rates that a reader can check."""

import io
import math

import pytest

from model_deploy.training.shown.progress import Progress
from model_deploy.training.steps.report import StepReport

pytestmark = pytest.mark.one_mode

NAN = math.nan


def report(step, *, wait_secs=NAN, learning_rate=NAN, staleness=0):
    return StepReport(step, 0.25, learning_rate, wait_secs, -1, staleness, (0.25,))


@pytest.fixture
def clock(monkeypatch):
    """Sets the times at which the clock is read."""

    def set_times(*times):
        left = iter(times)
        monkeypatch.setattr("time.perf_counter", lambda: next(left))

    return set_times


@pytest.mark.parametrize(
    ("max_steps", "options", "line"),
    [
        # Steps of 0.5, 1 and 2 s with 64 images: 128, 64, 32 images/s, median 64, median
        # distance 32; 3 steps in 3.5 s; 7 steps of 7/6 s are left.
        (20, {}, "step 13/20  loss 0.2500  55 ± 47 images/s  1.1667 s/batch  0:00:08 left"),
        (None, {}, "step 13  loss 0.2500  55 ± 47 images/s  1.1667 s/batch"),
        (
            None,
            {"learning_rate": 0.001, "wait_secs": 0.35},
            "step 13  loss 0.2500  rate 0.001  55 ± 47 texts/s  1.1667 s/batch"
            "  30% waiting for data",
        ),
    ],
)
def test_lines(clock, max_steps, options, line):
    """Without a terminal each update is a line; rates come from the times of the steps. What is
    counted has the name that it was given.
    """
    clock(100.0, 100.5, 101.5, 103.5)
    stream = io.StringIO()
    unit = {"unit": "texts"} if options else {}
    with Progress(10, max_steps, 64, stream=stream, **unit) as progress:
        for step in (11, 12, 13):
            progress.add(report(step, **options))
        progress.show(report(13, **options))
    assert stream.getvalue() == line + "\n"


def test_a_line_is_written_at_once():
    """A line and its end are one piece: what another thread prints does not come between."""
    pieces = []
    stream = io.StringIO()
    stream.write = pieces.append
    with Progress(0, None, 1, stream=stream) as progress:
        progress.line("step 1")
    assert pieces == ["step 1\n"]


def test_entry(clock):
    """The numbers of an update are returned, and the next update counts from there. What was spent
    on an evaluation is no part of a step's time.
    """
    clock(100.0, 101.0, 107.0)
    progress = Progress(0, 4, 10, stream=io.StringIO())
    progress.add(report(1, wait_secs=0.25))
    progress.show(report(1))
    progress.leave_out(4.0)
    progress.add(report(2, wait_secs=0.5))
    entry = progress.show(report(2, learning_rate=0.5))
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "step": 2,
        "loss": 0.25,
        "learning_rate": 0.5,
        "images_per_sec": 5.0,
        "images_per_sec_spread": 0.0,
        "secs_per_batch": 2.0,
        "waiting": 0.25,
        "secs_left": 4.0,
    }


def test_a_bar():
    """On a terminal there is a bar with the same numbers, and lines go above it."""
    stream = io.StringIO()
    stream.isatty = lambda: True
    with Progress(10, 30, 64, stream=stream) as progress:
        progress.add(report(11))
        progress.show(report(20))
        progress.line("evaluated")
    text = stream.getvalue()
    assert "20/30" in text
    assert "loss 0.2500" in text
    assert "images/s" in text
    assert "evaluated\n" in text
