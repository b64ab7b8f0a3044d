"""A whole cluster of real processes, from its start to its end."""

import sys
import time

import pytest

from tests.processes.faults import END_SECS
from tests.processes.harness import Processes

TARGET = 300


@pytest.mark.not_v1("a count that a reference variable returns may be that of the other worker")
@pytest.mark.slow
def test_cluster_starts_counts_and_ends(tmp_path):
    """Launched tasks find each other; every one, ps included, ends with 0 soon after."""
    program = [sys.executable, "-m", "tests.processes.counting", f"--max_number_of_steps={TARGET}"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(["--num_workers=2", "--num_ps=2"], program)
        last = [launch.wait_for_line(rf"^worker {i}\| last step (\d+) at (\S+)") for i in (0, 1)]
        assert launch.wait() == 0
        ended = time.monotonic()
        assert processes.living() == []
    # Each of the two workers may take a step after the other has reached the target.
    assert sorted(int(match.group(1)) for match in last) == [TARGET, TARGET + 1]
    assert ended - max(float(match.group(2)) for match in last) < END_SECS
    for i in (0, 1):
        assert f"ps {i}| served\n" in launch.log
    assert "end without" not in launch.log
    assert "ending" not in launch.log
