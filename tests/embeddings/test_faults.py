"""Tables on parameter servers that are killed."""

import re
import sys

import pytest

from tests import harness
from tests.checkpoint_values import checkpoint_values
from tests.embeddings import models
from tests.processes.harness import Processes

_STEPS, _SAVE_STEPS = 40, 10


def _train(folder, kill_at=None):
    """Trains in a cluster of two workers and two servers; returns its log and values by id."""
    folder.mkdir()
    flags = {
        "mode": "synchronous",
        "train_dir": folder / "run",
        "max_number_of_steps": _STEPS,
        "save_interval_steps": _SAVE_STEPS,
        "checkpoint_increments": 2,
        "step_secs": 0.02,
    }
    program = [sys.executable, "-m", "tests.embeddings.cluster_training"]
    with Processes(folder) as processes:
        launch = processes.launch(
            ["--num_workers=2", "--num_ps=2", "--max_restarts=2"],
            [*program, *(f"--{name}={value}" for name, value in flags.items())],
        )
        if kill_at is not None:
            launch.wait_for_line(rf"worker 0\| step {kill_at}/")
            launch.signal_task("ps 1")
        assert launch.wait() == 0, launch.log
        processes.assert_no_orphan()
    values = checkpoint_values(folder / "run")
    assert values["global_step"] == _STEPS
    return launch.log, models.by_id(values)


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_killed_server_loses_one_save_interval_at_most(tmp_path):
    """The run says how many steps are lost, repeats them, and ends with the rows of another run."""
    _, expected = _train(tmp_path / "whole")
    log, found = _train(tmp_path / "killed", kill_at=27)
    lost = [int(number) for number in re.findall(r"worker 0\| .*: (\d+) steps are lost", log)]
    assert len(lost) == 1, log
    assert 0 < lost[0] <= _SAVE_STEPS
    harness.assert_close(found, expected)
