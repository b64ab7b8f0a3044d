"""When a task reports its steps."""

import types

import pytest

from model_deploy.training.pace.reporting import Reporter
from model_deploy.training.pace.spending import Spent

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("step_secs", "expected"),
    [
        # Looked at 10 times a second, for 10 s: one report in the beginning, and then
        (2.0, 1 + 10),  # of a task that is there, each second, steps among them;
        (0.25, 1 + 40),  # each of 4 steps a second,
        (0.1, 1 + 100),  # and of 10;
        (0.02, 1 + 20),  # of 50 steps a second twice a second.
    ],
)
def test_how_often_steps_are_reported(monkeypatch, step_secs, expected):
    """Slow steps are reported one by one, fast ones each half second, and none each second."""
    spending = types.SimpleNamespace(spent=Spent())
    reporter = Reporter(spending)
    reports = 0
    for tick in range(101):
        now = tick / 10
        monkeypatch.setattr("time.monotonic", lambda now=now: now)
        spending.spent = Spent(steps=int((now + 1e-6) / step_secs))
        if reporter.is_due():
            assert reporter.report().spent is spending.spent
            reports += 1
    assert reports == expected
