"""Clusters of real processes in which one is killed or stopped while they train."""

import random
import signal

import pytest

from tests.processes.faults import Case, run_case

SEED = 6
_random = random.Random(SEED)


def _case(mode, victim, number, **settings):
    """A fault at a step of the seed's choice, away from the start and the end."""
    return Case(mode, victim, number, moment=_random.randint(5, 40), stop_secs=3.0, **settings)


CASES = [
    _case("asynchronous", "worker 1", signal.SIGKILL),
    _case("asynchronous", "worker 0", signal.SIGKILL),
    _case("asynchronous", "ps 1", signal.SIGKILL),
    _case("synchronous", "worker 1", signal.SIGKILL),
    _case("synchronous", "worker 0", signal.SIGTERM),
    _case("synchronous", "ps 0", signal.SIGKILL),
    _case("synchronous", "ps 1", signal.SIGSTOP),
    _case("all_reduce", "worker 1", signal.SIGKILL),
]


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("case", CASES, ids=str)
def test_promises_hold(case, tmp_path):
    """The run ends at its last step with the weights that it should have, and leaves nothing."""
    run_case(case, tmp_path)
