"""Rotated steps on parameter servers, in real processes of which one is lost."""

import signal

import pytest

from tests.processes.faults import Case, run_case


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "number"),
    [
        ("worker 0", signal.SIGKILL),
        pytest.param("worker 0", signal.SIGTERM, marks=pytest.mark.one_mode),
        pytest.param("worker 1", signal.SIGKILL, marks=pytest.mark.one_mode),
        pytest.param("worker 1", signal.SIGTERM, marks=pytest.mark.one_mode),
    ],
)
def test_promises_hold(victim, number, tmp_path):
    """The run ends at its last step; with the weights of plain steps, if nobody was killed."""
    run_case(Case("rotated", victim, number, 25), tmp_path)
