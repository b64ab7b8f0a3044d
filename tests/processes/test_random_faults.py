"""Runs whose workers are killed, ended, stopped and added at random."""

import pytest

from tests.processes.random_faults import disturb

pytestmark = pytest.mark.one_mode


@pytest.mark.slow
@pytest.mark.parametrize("way", ["all-reduce", "2 ps", "asynchronous"])
def test_workers_come_and_go(way, tmp_path):
    """The run ends at its last step, and, where workers are synchronous, with the right weights."""
    print(f"longest pause: {disturb(tmp_path, way, seed=2, secs=8.0)} s")
