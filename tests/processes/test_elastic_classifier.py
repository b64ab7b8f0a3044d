"""`train_image_classifier` on workers that come and go."""

import re
import sys

import numpy as np
import pytest

from tests.checkpoint_values import checkpoint_values
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

STEPS = 150
SHARES = 2
PROGRAM = [
    *(sys.executable, "-m", "train_image_classifier", "--clone_on_cpu", "--num_clones=1"),
    *("--model_name=mnist_mlp", "--optimizer=momentum"),
    *("--batch_size=8", f"--max_number_of_steps={STEPS}", f"--eval_every_n_steps={STEPS // 2}"),
]


# Flags of the launcher, and of the command, for each way to train.
WAYS = {"all-reduce": ([], []), "ps": (["--elastic", "--num_ps=1"], ["--sync_replicas"])}


def train(folder, way, lost=None):
    """Trains by a launcher, of whose workers one may be killed; returns what it has printed."""
    of_launcher, of_command = WAYS[way]
    flags = ["--min_workers=1", f"--max_workers={SHARES}", *of_launcher]
    with Processes(folder) as processes:
        launch = processes.launch(flags, [*PROGRAM, f"--train_dir={folder}/run", *of_command])
        if lost is not None:
            launch.wait_for_line(rf"^worker {lost}\| step 20/")
            launch.signal_task(f"worker {lost}")
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    return launch.log


def values(folder):
    """All that the checkpoint of the last step has: arrays by name."""
    return checkpoint_values(folder / "run" / f"model.ckpt-{STEPS}")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_loses_its_chief_ends_as_one_that_does_not(way, tmp_path):
    """Weights, positions and accuracies are those of the undisturbed run; the heir evaluates."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "lost").mkdir()
    logs = {0: train(tmp_path / "whole", way), 1: train(tmp_path / "lost", way, lost=0)}
    for chief, log in logs.items():
        lines = re.findall(r"^worker (\d)\| (evaluation|test accuracy) at step (\d+)", log, re.M)
        assert lines[-1] == (str(chief), "test accuracy", str(STEPS))
    assert "world 2: worker 1 is one of 1 and takes 2 of 2 shares" in logs[1]
    expected, found = values(tmp_path / "whole"), values(tmp_path / "lost")
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
