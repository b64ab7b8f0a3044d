"""Programs of Estimator as they were written in 2019 run as they are, and learn."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.one_mode]


@pytest.mark.parametrize(
    ("program", "flags", "accuracy"),
    [
        ("mnist_estimator.py", ("--train_steps=60", "--batch_size=100"), 0.85),
        ("wide_deep.py", ("--train_steps=150",), 0.7),
    ],
)
def test_programs_learn(program, flags, accuracy, tmp_path):
    """Each ends at its last step, with a checkpoint, and tells more right than wrong."""
    path = ROOT / "examples" / "tensorflow_1" / program
    done = subprocess.run(
        [sys.executable, "-m", "model_deploy.tf1", str(path), f"--model_dir={tmp_path}", *flags],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.returncode == 0, done.stderr
    step, found = re.search(r"test accuracy at step (\d+): ([\d.]+)", done.stdout).groups()
    assert (tmp_path / f"model.ckpt-{step}.index").exists()
    assert f"--train_steps={step}" in flags
    assert float(found) > accuracy
