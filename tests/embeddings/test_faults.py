"""Tables on parameter servers that are killed."""

import re
import sys

import pytest

from tests import harness
from tests.checkpoint_values import checkpoint_values
from tests.embeddings import cluster_training, models
from tests.goldens import LogicalDevices
from tests.processes.harness import Processes

_STEPS, _SAVE_STEPS = 40, 10


def _undisturbed():
    """Values by id after the steps of two workers that nobody disturbs."""
    config = LogicalDevices(num_replicas=2, num_ps_tasks=2, replicas_to_aggregate=2)
    model_fns = [cluster_training.model_of(replica_id) for replica_id in range(2)]
    optimizer_of = cluster_training.optimizer_of
    runs = harness.train_replicas(config, model_fns, optimizer_of, steps=_STEPS)
    return models.by_id(runs[0].values)


def _killed(folder, kill_at):
    """Trains in a cluster, one of whose servers is killed; returns its log and values by id.

    The workers wait after step `kill_at` until the server is dead.
    """
    gate = folder / "gate"
    flags = {
        "mode": "synchronous",
        "train_dir": folder / "run",
        "max_number_of_steps": _STEPS,
        "save_interval_steps": _SAVE_STEPS,
        "checkpoint_increments": 2,
        "hold_at": kill_at,
        "gate": gate,
    }
    program = [sys.executable, "-m", "tests.embeddings.cluster_training"]
    with Processes(folder) as processes:
        launch = processes.launch(
            ["--num_workers=2", "--num_ps=2", "--max_restarts=2"],
            [*program, *(f"--{name}={value}" for name, value in flags.items())],
        )
        launch.wait_for_line(rf"worker 0\| step {kill_at - 1}/")
        launch.signal_task("ps 1")
        gate.touch()
        assert launch.wait() == 0, launch.log
        processes.assert_no_orphan()
    values = checkpoint_values(folder / "run")
    assert values["global_step"] == _STEPS
    return launch.log, models.by_id(values)


@pytest.mark.slow
@pytest.mark.one_mode
def test_a_killed_server_loses_one_save_interval_at_most(tmp_path):
    """The run says how many steps are lost, repeats them, and ends with the rows of another run."""
    log, found = _killed(tmp_path, kill_at=27)
    lost = [int(number) for number in re.findall(r"worker 0\| .*: (\d+) steps are lost", log)]
    assert len(lost) == 1, log
    assert 0 < lost[0] <= _SAVE_STEPS
    harness.assert_close(found, _undisturbed())
