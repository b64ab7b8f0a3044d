"""Programs of Estimator as they were written in 2019 run as they are, and learn."""

import re
import sys
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from tests.processes.harness import Processes

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples" / "tensorflow_1"
pytestmark = [pytest.mark.slow, pytest.mark.one_mode]
_COMMAND = (sys.executable, "-m", "model_deploy.tf1")


@pytest.mark.parametrize(
    ("program", "flags", "accuracy"),
    [
        ("mnist_estimator.py", ("--train_steps=60", "--batch_size=100"), 0.85),
        ("wide_deep.py", ("--train_steps=150",), 0.7),
    ],
)
def test_programs_learn(program, flags, accuracy, tmp_path):
    """Each ends at its last step, with a checkpoint, and tells more right than wrong."""
    folder = tmp_path / "run"
    command = [*_COMMAND, str(PROGRAMS / program), f"--model_dir={folder}", *flags]
    with Processes(tmp_path, CUDA_VISIBLE_DEVICES="-1") as processes:
        process = processes.start("program", command)
        assert process.wait() == 0, process.log
    step, found = re.search(r"test accuracy at step (\d+): ([\d.]+)", process.log).groups()
    assert (folder / f"model.ckpt-{step}.index").exists()
    assert f"--train_steps={step}" in flags
    assert float(found) > accuracy


@pytest.mark.parametrize("program", ["mnist_estimator.py", "wide_deep.py"])
def test_on_two_workers_a_parameter_server_and_an_evaluator(program, tmp_path):
    """All tasks end by themselves, and the evaluator has evaluated the last checkpoint."""
    steps = 40
    flags = ["--num_workers=2", "--num_ps=1", "--evaluator"]
    command = [*_COMMAND, str(PROGRAMS / program), f"--train_steps={steps}"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(flags, [*command, f"--model_dir={tmp_path / 'run'}"])
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    last = tf.train.latest_checkpoint(str(tmp_path / "run"))
    assert int(last.rpartition("-")[2]) >= steps  # asynchronous workers may make one more each
    [events] = (tmp_path / "run" / "eval").iterdir()
    evaluated = {
        event.step
        for event in tf.train.summary_iterator(str(events))
        for value in event.summary.value
        if value.tag == "accuracy"
    }
    assert max(evaluated) >= steps
