"""The expected slowest of several workers, against numbers from tables and from trials."""

import numpy as np
import pytest

from model_deploy.plan import expected_slowest

pytestmark = pytest.mark.one_mode

# Expected maxima of n standard normal numbers: 1 / sqrt(pi), 3 / (2 sqrt(pi)), and from tables
# (Harter, Expected values of normal order statistics, Biometrika 48, 1961).
MAXIMA = {1: 0.0, 2: 0.56419, 3: 0.84628, 10: 1.53875, 100: 2.50759}


def test_expected_maximum():
    """That of n standard normal numbers, scaled and moved. Without deviation nobody waits, even of
    512. Of 10 workers the second slowest comes after 1.00136; of two the fastest before the mean.
    """
    for workers, maximum in MAXIMA.items():
        found = expected_slowest(workers, 5.0, 0.5)
        assert found == pytest.approx(5.0 + 0.5 * maximum, abs=1e-4)
    assert expected_slowest(512, 0.3, 0.0) == 0.3
    assert expected_slowest(10, 0.0, 1.0, backups=1) == pytest.approx(1.00136, abs=1e-4)
    assert expected_slowest(2, 0.0, 1.0, backups=1) == pytest.approx(-0.56419, abs=1e-4)


def test_trials_agree():
    """The mean over 20,000 trials of 16 workers, 2 of them backups, is within 4 standard errors."""
    times = np.sort(np.random.default_rng(1).normal(1.0, 0.2, (20_000, 16)), axis=1)[:, 13]
    error = times.std() / np.sqrt(len(times))
    assert abs(expected_slowest(16, 1.0, 0.2, backups=2) - times.mean()) < 4 * error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 0.1), "workers must be at least 1, got 0"),
        ((2, 1.0, -0.1), "deviation must be at least 0, got -0.1"),
        ((2, 1.0, 0.1, -1), "backups must be at least 0, got -1"),
        ((2, 1.0, 0.1, 2), "backups must be less than workers=2, got 2"),
    ],
)
def test_what_makes_no_sense(arguments, message):
    """Each error names the field, the rule and the value."""
    with pytest.raises(ValueError, match=message):
        expected_slowest(*arguments)
