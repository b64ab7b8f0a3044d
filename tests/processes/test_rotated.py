"""Rotated steps on parameter servers, in real processes of which one is lost."""

import signal

import pytest

from tests.processes.faults import Case, run_case


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker 0", "worker 1"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_promises_hold(victim, number, tmp_path):
    """The run ends at its last step; with the weights of plain steps, if nobody was killed."""
    run_case(Case("rotated", victim, number, 25), tmp_path)
