"""Estimator on workers and a parameter server, launched on this machine."""

import re
import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from tests.estimator import cluster_program, models
from tests.estimator.test_deploying import check_equal, train
from tests.processes.harness import LAUNCH, Processes

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]


def test_synchronous_workers_train_as_one(tmp_path):
    """Two workers and a ps end, all of them, where one process ends on batches of both."""
    program = Path(cluster_program.__file__)
    with Processes(tmp_path) as processes:
        launch = processes.start(
            "launch",
            [
                *(*LAUNCH, "--num_workers=2", "--num_ps=1", f"--log_dir={tmp_path}", "--"),
                *(sys.executable, str(program), str(tmp_path / "run")),
            ],
            guarded=False,
        )
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    ended = re.findall(r"(\w+ \d) has ended", launch.log)
    assert sorted(ended) == ["chief 0", "ps 0", "worker 0"]
    model_fn = models.model_fn_of(models.STYLES["clipped"])
    expected = train(model_fn, tmp_path / "plain", steps=cluster_program.STEPS, dense=True)
    reader = tf.train.load_checkpoint(str(tmp_path / "run"))
    found = {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    check_equal(found, expected)
