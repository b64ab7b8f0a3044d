"""Save intervals: the best one is the best one, and a simulation agrees with the share."""

import math

import numpy as np
import pytest

from model_deploy.plan import best_save_interval, useful_share

pytestmark = pytest.mark.one_mode

HOUR = 3600.0


def test_best_interval():
    """For saves that are short against failures it is sqrt(2 d M): here sqrt(2 * 1 * 10^6). From
    saves of twice the time between failures on, Daly's interval is that time. Failures in a million
    years and saves of no time cost nothing.
    """
    assert useful_share(600.0, 0.0, 60.0, 1e13) == pytest.approx(1.0)
    assert best_save_interval(1.0, 1e6) == pytest.approx(math.sqrt(2e6), rel=1e-3)
    assert best_save_interval(20.0, 10.0) == 10.0


@pytest.mark.parametrize(("save_secs", "between"), [(10, HOUR), (60, 24 * HOUR), (300, 2 * HOUR)])
def test_no_other_interval_is_much_better(save_secs, between):
    """Of intervals from a fifth to five times, none loses less by more than a thousandth."""
    best = best_save_interval(save_secs, between)
    share = useful_share(best, save_secs, 60.0, between)
    others = [useful_share(best * x, save_secs, 60.0, between) for x in np.geomspace(0.2, 5, 101)]
    assert share >= max(others) - 1e-3
    assert min(others) < share - 1e-3


def test_simulated_failures_agree():
    """Work that is lost, repeated and saved takes the time that the share says, within 2%."""
    interval, save_secs, restart_secs, between = 600.0, 30.0, 120.0, 3600.0
    random = np.random.default_rng(1)
    now, segments = 0.0, 20_000
    for _ in range(segments):
        while (until_failure := random.exponential(between)) < interval + save_secs:
            now += until_failure
            while (again := random.exponential(between)) < restart_secs:
                now += again
            now += restart_secs
        now += interval + save_secs
    share = segments * interval / now
    assert useful_share(interval, save_secs, restart_secs, between) == pytest.approx(
        share, rel=0.02
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: best_save_interval(0, 1), "save_secs must be more than 0, got 0"),
        (lambda: best_save_interval(1, 0), "secs_between_failures must be more than 0, got 0"),
        (lambda: useful_share(0, 1, 1, 1), "save_interval must be more than 0, got 0"),
        (lambda: useful_share(1, 1, 1, -1), "secs_between_failures must be more than 0, got -1"),
    ],
)
def test_what_makes_no_sense(call, message):
    """Each error names the field, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        call()
