"""Programs as they were written for Horovod train on two workers, and end when one is lost."""

import json
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.launch import ReservedPorts
from tests.processes.harness import Processes

PROGRAMS = Path(__file__).parent / "programs"
TF1 = [sys.executable, "-m", "model_deploy.tf1"]
pytestmark = [pytest.mark.slow, pytest.mark.one_mode]


def _launch(processes, program, *flags, **env):
    """Two workers of a program to their end; what they printed, line by line, the same in both."""
    command = [*TF1, str(PROGRAMS / program), *map(str, flags)]
    launch = processes.launch(["--num_workers=2"], command, **env)
    assert launch.wait() == 0, launch.log
    return launch.log


def test_digits_with_a_session_and_a_hook(tmp_path):
    """Workers that start apart end with the same weights; worker 0 alone has written a checkpoint.

    Variables of Horovod that mean nothing are named once.
    """
    with Processes(tmp_path) as processes:
        log = _launch(
            processes,
            "mnist.py",
            f"--model_dir={tmp_path / 'run'}",
            HOROVOD_CYCLE_TIME="1",
            HOROVOD_FUSION_THRESHOLD="1000",
        )
    found = re.findall(r"worker (\d) of 2: accuracy ([\d.]+), weights ([\d.]+)", log)
    assert sorted(rank for rank, _, _ in found) == ["0", "1"]
    assert found[0][1:] == found[1][1:]
    assert float(found[0][1]) > 0.8
    assert log.count("these variables change nothing here: HOROVOD_CYCLE_TIME") == 1
    checkpoint = tf.train.latest_checkpoint(str(tmp_path / "run"))
    assert tf.train.load_variable(checkpoint, "global_step") == 30


def test_a_refused_step(tmp_path):
    """No worker makes it again by itself: all are started again, and end with the same weights."""
    flags = [f"--model_dir={tmp_path / 'run'}"]
    with Processes(tmp_path) as processes:
        log = _launch(processes, "refused.py", *flags, REFUSED_MARK=str(tmp_path / "refused"))
    assert "worker 1 failed with exit status 75: starting all tasks again, not counted" in log
    found = re.findall(r"worker (\d) of 2: accuracy ([\d.]+), weights ([\d.]+)", log)
    assert sorted(rank for rank, _, _ in found) == ["0", "1"]
    assert found[0][1:] == found[1][1:]


def test_digits_with_keras(tmp_path):
    """`fit` of tf-keras: weights and metrics are the same in both workers, the rate warms up."""
    with Processes(tmp_path) as processes:
        log = _launch(processes, "keras_digits.py")
    found = re.findall(r"accuracy ([\d.]+), loss ([\d.]+), weights ([\d.]+)$", log, re.MULTILINE)
    assert len(found) == 2
    assert found[0] == found[1]
    assert float(found[0][0]) > 0.9
    assert log.count("rates [0.3, 0.4, 0.4, 0.4, 0.04]") == 2
    assert log.count("ranks [0, 1]") == 2


def test_digits_with_the_package_keras(tmp_path):
    """`import keras` is Keras 2, as when the program was written, without a warning; both workers
    learn alike, and so they do from a saved model.
    """
    with Processes(tmp_path) as processes:
        log = _launch(processes, "standalone_keras.py")
    found = re.findall(r"accuracy ([\d.]+), weights ([\d.]+)$", log, re.MULTILINE)
    assert len(found) == 2
    assert found[0][1] == found[1][1]
    assert min(float(accuracy) for accuracy, _ in found) > 0.9
    again = re.findall(r"RMSprop loaded, same slots True, weights ([\d.]+)$", log, re.MULTILINE)
    assert len(again) == 2
    assert again[0] == again[1] != found[0][1]
    assert "Warning" not in log


def test_digits_with_an_estimator(tmp_path):
    """Workers make the steps of one process, each `Estimator` on its own; worker 0 goes on later.

    `model_deploy.launch` says in `TF_CONFIG` that they are a cluster, in which Estimator would give
    them one set of variables.
    """
    flags = f"--model_dir={tmp_path / 'run'}"
    with Processes(tmp_path) as processes:
        command = [*TF1, str(PROGRAMS / "estimator.py"), "--steps=20"]
        alone = processes.start("alone", [*command, f"--model_dir={tmp_path / 'alone'}"])
        assert alone.wait() == 0, alone.log
        for steps in (10, 20):
            log = _launch(processes, "estimator.py", flags)
            found = re.findall(rf"worker (\d) of 2: step {steps}, weights (\[.*\])", log)
            assert sorted(rank for rank, _ in found) == ["0", "1"]
            assert found[0][1] == found[1][1]
    [expected] = re.findall(r"worker 0 of 1: step 20, weights (\[.*\])", alone.log)
    np.testing.assert_allclose(json.loads(found[0][1]), json.loads(expected), rtol=1e-4, atol=1e-6)
    assert re.findall(r"accuracy [\d.]+", log) == re.findall(r"accuracy [\d.]+", alone.log) != []


def test_a_lost_worker_ends_all(tmp_path):
    """The benchmark runs until a worker is killed: the other names it, and ends within seconds."""
    flags = "--model=tiny --batch-size=4 --num-warmup-batches=1 --num-batches-per-iter=3"
    command = [*TF1, str(PROGRAMS / "synthetic_benchmark.py"), *flags.split(), "--no-cuda"]
    with ReservedPorts(2) as ports, Processes(tmp_path) as processes:
        workers = []
        for task in (0, 1):
            place = {
                "cluster": {"worker": list(ports.addresses)},
                "task": {"type": "worker", "index": task},
            }
            more = ["--fp16-allreduce", "--dies-after=2", "--num-iters=3"]
            workers.append(
                processes.start(f"worker-{task}", [*command, *more], TF_CONFIG=json.dumps(place))
            )
        assert workers[1].wait() == 128 + signal.SIGKILL
        lost = time.monotonic()
        assert workers[0].wait() == 1
        assert time.monotonic() - lost < 60  # some seconds on a machine that is not busy
    log = workers[0].log
    assert re.search(r"Iter #0: [\d.]+ img/sec per worker", log)
    assert f"lost the connection to worker 1 at {ports.addresses[1]}" in log
