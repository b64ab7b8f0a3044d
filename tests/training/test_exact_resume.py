"""A run that is killed or stopped and started again ends as one that was not, to the last bit."""

import contextlib
import io
import os
import random
import re
import signal
import sys

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import config

import train_image_classifier as script
from model_deploy.image_training import training_run
from tests import devices
from tests.inputs import files
from tests.processes.harness import Processes

NUM_STEPS = 10
LENET = ["--model_name=lenet", "--dataset_name=digits", "--optimizer=adam"]
CIFARNET = ["--model_name=cifarnet", "--dataset_name=tfrecord", "--optimizer=momentum"]
RUNS = {
    "lenet on digits": LENET,
    "mlp compiled by XLA": ["--model_name=mnist_mlp", *LENET[1:], "--xla"],
    "cifarnet on records by deterministic ops": [
        *CIFARNET,
        "--weight_decay=0.004",
        "--deterministic",
    ],
}


# Each kind of run, one clone as well as several, and each end alone as well as both; and how many
# values a checkpoint has. Its ops are the same with `--v1`.
CASES = [
    ("lenet on digits", 4, ("killed", "stopped"), 35),
    ("mlp compiled by XLA", 1, ("stopped",), 19),
    ("cifarnet on records by deterministic ops", 2, ("killed",), 31),
]


@pytest.fixture(autouse=True)
def own_ops():
    """Ops of other tests stay as they are: `--deterministic` is for the whole process."""
    yield
    config.disable_op_determinism()


def write_records(folder):
    """Images in TFRecords, to train on and to be evaluated."""
    for split, shard_sizes in (("train", [50, 40]), ("test", [40])):
        files.write_examples(folder, shard_sizes, (32, 32, 3), split=split)


def flags(train_dir, run, num_clones):
    """Flags of a run with dropout, augmentation, moving averages and a changing rate."""
    of_dataset = [f"--dataset_dir={train_dir.parent / 'records'}"] if "on records" in run else []
    return [
        *RUNS[run],
        *of_dataset,
        f"--train_dir={train_dir}",
        f"--num_clones={num_clones}",
        # Kernels of GPUs add in an order of their own unless they are told not to.
        "--deterministic" if devices.on_gpus() else "--clone_on_cpu",
        "--global_batch_size=8",
        "--seed=3",
        f"--max_number_of_steps={NUM_STEPS}",
        "--moving_average_decay=0.9",
        "--num_epochs_per_decay=0.1",
        "--save_interval_steps=3",
        "--log_every_n_steps=1",
    ]


def run_to_the_end(train_dir, run, num_clones):
    """Runs the command in this process; returns all values of its last checkpoint."""
    assert script.main(["train", *flags(train_dir, run, num_clones)]) == 0
    path = str(train_dir / f"model.ckpt-{NUM_STEPS}")
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name, _ in tf.train.list_variables(path)}


def kill_at_step(train_dir, run, num_clones, step):
    """Runs the command in a process of its own, which is killed when it shows a step."""
    command = [sys.executable, "-m", "train_image_classifier", *flags(train_dir, run, num_clones)]
    with Processes(train_dir.parent) as processes:
        process = processes.start("killed", command, guarded=False)
        process.wait_for_line(rf"^step {step}/")
        process.signal(signal.SIGKILL)
        assert process.wait() == 128 + signal.SIGKILL


def _need_gpus(number):
    """The command takes GPUs as they are, not cut."""
    if devices.on_gpus() and devices.num_gpus() < number:
        pytest.skip(f"needs {number} GPUs, got {devices.num_gpus()}")


class Stop(io.StringIO):
    """A stream that sends this process SIGTERM when a step is shown."""

    def __init__(self, step):
        super().__init__()
        self.line = re.compile(rf"step {step}/")

    def write(self, text):
        """Writes as any stream does."""
        if self.line.match(text):
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def stop_at_step(train_dir, run, num_clones, step):
    """Runs the command in this process, which gets SIGTERM when it shows a step."""
    shown = Stop(step)
    with contextlib.redirect_stderr(shown):
        code = script.main(["train", *flags(train_dir, run, num_clones)])
    assert code == 128 + signal.SIGTERM
    assert "stopped by SIGTERM at step" in shown.getvalue()


@pytest.mark.one_mode
@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_killed_and_stopped(tmp_path, monkeypatch, case):
    """After kill -9 and SIGTERM all values are those of a run that was never stopped, also where
    runs by deterministic ops are evaluated.
    """
    run, num_clones, ends, num_values = case
    _need_gpus(num_clones)
    is_deterministic = "deterministic" in run or devices.on_gpus()
    if not is_deterministic:
        # The evaluation comes after the last checkpoint, and takes longer than the steps.
        monkeypatch.setattr(training_run, "evaluate_newest", lambda run, evaluator: None)
    assert not config.is_op_determinism_enabled()
    if "on records" in run:
        write_records(tmp_path / "records")
    steps = random.Random(f"{run} {num_clones}")
    killed_at, stopped_at = steps.randint(2, 5), steps.randint(6, NUM_STEPS - 2)
    broken = tmp_path / "broken"
    if "killed" in ends:
        kill_at_step(broken, run, num_clones, killed_at)
    if "stopped" in ends:
        stop_at_step(broken, run, num_clones, stopped_at)
    resumed = run_to_the_end(broken, run, num_clones)
    expected = run_to_the_end(tmp_path / "whole", run, num_clones)
    assert config.is_op_determinism_enabled() == is_deterministic
    assert len(expected) == num_values
    assert expected["global_step"] == NUM_STEPS
    assert resumed.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)
