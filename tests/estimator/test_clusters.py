"""Estimator on workers and a parameter server, launched on this machine."""

import json
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

from model_deploy import estimator
from model_deploy.estimator import clusters
from tests.checkpoint_values import checkpoint_values
from tests.estimator import cluster_program, models
from tests.estimator.test_deploying import check_equal, train
from tests.processes.harness import Processes

pytestmark = [pytest.mark.slow, pytest.mark.one_mode]
PROGRAM = [sys.executable, str(Path(cluster_program.__file__))]


@pytest.mark.parametrize(
    ("way", "flags", "tasks"),
    [
        ("synchronous", ["--num_ps=2"], ["chief 0", "ps 0", "ps 1", "worker 0"]),
        ("two losses", ["--num_ps=2"], ["chief 0", "ps 0", "ps 1", "worker 0"]),
        ("all-reduce", [], ["chief 0", "worker 0"]),
    ],
)
def test_synchronous_workers_train_as_one(way, flags, tasks, tmp_path):
    """Two workers end, and servers, where one process ends on batches of both.

    So do moving averages that follow the update, and copies of the variables for each clone.
    """
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, str(tmp_path / "run"), way]
        launch = processes.launch(["--num_workers=2", *flags], program)
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    assert sorted(re.findall(r"(\w+ \d) has ended", launch.log)) == tasks
    style, _ = cluster_program.WAYS[way]
    model_fn = models.model_fn_of(models.STYLES[style])
    steps, batch_size = cluster_program.STEPS, cluster_program.BATCH_SIZE
    expected = train(model_fn, tmp_path / "plain", batch_size, steps, dense=True)
    check_equal(checkpoint_values(tmp_path / "run"), expected)


def test_the_evaluator_ends_after_the_last_step(tmp_path, monkeypatch):
    """It evaluates the last checkpoint, and does not wait for a turn that has nothing more."""
    model_fn = models.model_fn_of(models.STYLES["minimize"])
    train(model_fn, tmp_path, steps=2)
    place = {
        "cluster": {"chief": ["h:1"], "ps": ["h:2"]},
        "task": {"type": "evaluator", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(place))
    evaluator = estimator.Estimator(model_fn, str(tmp_path), params={"rate": 0.1})
    assert evaluator.config.task_type == "evaluator"
    begun = time.monotonic()
    estimator.train_and_evaluate(
        evaluator,
        estimator.TrainSpec(models.input_fn(8), max_steps=2),
        estimator.EvalSpec(models.input_fn(8, repeat=1), start_delay_secs=0, throttle_secs=1000),
    )
    assert time.monotonic() - begun < 100
    assert list(tmp_path.glob("eval/events*"))


@pytest.mark.parametrize(("way", "num_ps"), [("asynchronous", 1), ("synchronous", 2)])
def test_tasks_are_killed_at_random(way, num_ps, tmp_path):
    """Whichever task is killed, the run ends at its last step, and leaves no process behind."""
    steps = 30
    generator = random.Random(way)
    with Processes(tmp_path) as processes:
        flags = ["--num_workers=2", f"--num_ps={num_ps}", "--max_restarts=3"]
        launch = processes.launch(flags, [*PROGRAM, str(tmp_path / "run"), way, str(steps)])
        for victim in generator.sample(["worker 0", "worker 1", "ps 0"], 3):
            launch.wait_for_line(r"^worker 0\| step \d+/")
            time.sleep(generator.uniform(0.0, 1.0))
            launch.signal_task(victim)
            launch.wait_for_line(rf"^launch\| {victim} was ended by SIGKILL")
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    processes.assert_no_orphan()
    last = tf.train.latest_checkpoint(str(tmp_path / "run"))
    # Of two asynchronous workers each may be in a step at the end, and so may one that was killed.
    assert steps <= int(last.rpartition("-")[2]) <= steps + 2, launch.log


def test_a_server_is_lost_while_another_has_a_replica_wait(tmp_path):
    """A replica that waits at ps 0 for an update goes on where ps 1 has lost its gradients."""
    with Processes(tmp_path) as processes:
        program = [*PROGRAM, str(tmp_path / "run"), "synchronous", "12"]
        launch = processes.launch(["--num_workers=2", "--num_ps=2", "--max_restarts=1"], program)
        launch.wait_for_line(r"^worker 0\| step 3/")
        launch.signal_task("worker 0", signal.SIGSTOP)
        time.sleep(1.0)  # worker 1 comes to its next step
        launch.signal_task("ps 1")
        launch.wait_for_line(r"^launch\| ps 1 was ended by SIGKILL")
        launch.signal_task("worker 0", signal.SIGCONT)
        assert launch.wait() == 0, launch.log
    assert tf.train.latest_checkpoint(str(tmp_path / "run")).endswith("-12")


def test_a_step_that_is_cancelled_for_a_lost_server_is_a_loss():
    """Such an error is one after which a monitored session begins anew; others stay."""
    closed = tf.errors.CancelledError(None, None, "Session has been closed.")
    clusters._as_lost(None, closed)
    parts = "2 root error(s)\nCANCELLED: RecvTensor\nABORTED: From ps: Session handle is not found"
    clusters._as_lost(None, tf.errors.InvalidArgumentError(None, None, parts))
    with pytest.raises(tf.errors.AbortedError, match="handle is not found"):
        clusters._as_lost(None, tf.errors.CancelledError(None, None, parts))
