"""An evaluator follows a cluster by the folder of its run, whoever is lost meanwhile."""

import json
import re
import sys

import pytest
import tensorflow.compat.v1 as tf

import train_image_classifier as script
from model_deploy import DeploymentConfig, deploy, training
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode

STEPS, SAVE_STEPS = 60, 20
FLAGS = [
    *("--clone_on_cpu", "--num_clones=1", "--batch_size=8", "--log_every_n_steps=10"),
    "--optimizer=sgd",
    *(f"--max_number_of_steps={STEPS}", f"--save_interval_steps={SAVE_STEPS}"),
]
TF_CONFIG = json.dumps(
    {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "evaluator", "index": 0}}
)


def _evaluated(log):
    return [int(step) for step in re.findall(r"^evaluator\| test at step (\d+)", log, re.M)]


@pytest.mark.slow
def test_it_survives_the_chief_and_the_run_survives_it(tmp_path, monkeypatch, capsys):
    """Both are killed and started again: each checkpoint is evaluated once, the last one too."""
    program = [sys.executable, "-m", "train_image_classifier", *FLAGS]
    flags = ["--evaluator", "--max_restarts=2"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(flags, [*program, f"--train_dir={tmp_path}/run"])
        launch.wait_for_line(r"^evaluator. waiting for the chief|^evaluator. test at step")
        launch.wait_for_line(r"^worker 0. step [234]\d/")
        launch.signal_task("worker 0")
        launch.wait_for_line(r"^evaluator. test at step")
        launch.signal_task("evaluator")
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    ends = (
        r"^launch\| (.*) was ended by SIGKILL: starting (?:it|all tasks) again, \d restarts left$"
    )
    assert sorted(re.findall(ends, launch.log, re.M)) == ["evaluator", "worker 0"]
    steps = _evaluated(launch.log)
    assert steps == sorted({*steps})
    assert steps[-1] == STEPS
    assert f"evaluator| stopped: the run in {tmp_path}/run has ended at step {STEPS}" in launch.log
    history = (tmp_path / "run" / "eval_test" / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line)["global_step"] for line in history] == steps
    assert f"worker 0| test accuracy at step {STEPS}: " in launch.log

    # Started again, in this process, it has nothing left to do.
    monkeypatch.setenv("TF_CONFIG", TF_CONFIG)
    assert script.main(["train", *FLAGS, f"--train_dir={tmp_path}/run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "cluster from TF_CONFIG",
        f"stopped: the run in {tmp_path}/run has ended at step {STEPS}",
    ]


@pytest.mark.slow
def test_its_evaluations_end_the_run(tmp_path):
    """Workers of all-reduce end at one step, soon after the evaluator's second evaluation."""
    program = [sys.executable, "-m", "train_image_classifier", "--clone_on_cpu", "--all_reduce"]
    program += ["--num_clones=1", "--batch_size=8", "--save_interval_steps=20"]
    program += ["--model_name=mnist_mlp"]
    # No accuracy is better than the first one by more than 1.
    program += ["--stop_by=eval_test", "--stop_patience=1", "--stop_min_delta=1"]
    flags = ["--num_workers=2", "--evaluator"]
    with Processes(tmp_path) as processes:
        launch = processes.launch(flags, [*program, f"--train_dir={tmp_path}/run"])
        assert launch.wait() == 0, launch.log
        assert processes.living() == []
    said = r"^worker 0\| accuracy has not improved in \d evaluations .*: the run ends"
    assert re.search(said, launch.log, re.M), launch.log
    shown = [re.findall(rf"^worker {i}\| step (\d+)/", launch.log, re.M)[-1] for i in range(2)]
    assert shown[0] == shown[1]
    assert f"has ended at step {shown[0]}" in launch.log


def test_a_program_knows_its_role(graph):
    """Its place says so and leaves the deployment alone; an evaluator cannot train."""
    place = training.join_cluster({"TF_CONFIG": TF_CONFIG})
    config = DeploymentConfig(num_clones=2, clone_on_cpu=True)
    assert (place.is_evaluator, place.is_chief) == (True, False)
    assert place.deployment(config, replicas_to_aggregate=2) is config
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    model = deploy(
        DeploymentConfig(clone_on_cpu=True),
        lambda: tf.losses.add_loss(tf.get_variable("x", [])),
        optimizer=optimizer,
    )
    with pytest.raises(ValueError, match="place must be that of a worker to train, got that of"):
        training.train(model, "unused", max_steps=1, place=place)


def test_a_folder_without_a_run(tmp_path, monkeypatch, capsys):
    """It waits for a chief for as long as a parameter server does, and leaves nothing."""
    monkeypatch.setenv("TF_CONFIG", TF_CONFIG)
    command = ["train", *FLAGS, f"--train_dir={tmp_path}/run", "--start_timeout=0.01"]
    assert script.main([*command, "--all_reduce"]) == 1
    path = tmp_path / "run" / "options.yaml"
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-2:] == [
        "all_reduce is ignored: it is for workers, and this is the evaluator",
        f"waiting for the chief to write {path}",
    ]
    assert printed.err == (
        f"error: start_timeout must be long enough for the chief to write {path}, got 0.01 s; the "
        "evaluator and the chief need one train_dir\n"
    )
    assert list(tmp_path.iterdir()) == []
