"""Workers and parameter servers of one process: its flags, its steps, its files."""

import re
import threading

import pytest
import tensorflow.compat.v1 as tf

from examples import mnist_distributed as script
from model_deploy.launch import ReservedPorts
from tests.inputs import files

LINE = re.compile(r"step \d+/20  loss [\d.]+  .*  local step \d+  staleness ")
STEPS = 20


def run_cluster(num_workers, *flags):
    """Runs a parameter server and workers, a thread each; returns their exit codes."""
    codes = {}
    with ReservedPorts(1 + num_workers) as ports:
        hosts = (
            f"--ps_hosts={ports.addresses[0]}",
            f"--worker_hosts={','.join(ports.addresses[1:])}",
        )

        def run(job, task):
            arguments = ["mnist", *hosts, f"--job_name={job}", f"--task_id={task}", *flags]
            codes[job, task] = script.main(arguments)

        tasks = [("ps", 0), *(("worker", i) for i in range(num_workers))]
        threads = [threading.Thread(target=run, args=task, daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    return codes


@pytest.mark.slow
def test_cluster_by_flags(tmp_path, capsys):
    """All tasks end; the workers' local steps make the global step; the chief writes its files."""
    files.write_mnist(tmp_path / "data", count=40)
    folder = tmp_path / "run"
    flags = f"--train_dir={folder}", f"--data_dir={tmp_path / 'data'}", "--batch_size=4"
    every = "--log_every_n_steps=1", "--save_interval_secs=0", "--save_summaries_secs=0"
    codes = run_cluster(2, *flags, *every, f"--max_steps={STEPS}")
    assert codes == {("ps", 0): 0, ("worker", 0): 0, ("worker", 1): 0}
    shown = capsys.readouterr()
    assert len(LINE.findall(shown.err)) == STEPS
    assert f"test accuracy at step {STEPS}: " in shown.out
    assert len(list(folder.glob("model.ckpt-*.index"))) > 1
    tags = {
        value.tag
        for path in folder.glob("events*")
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    assert any("total_loss" in tag for tag in tags)


def test_regularization_and_decay():
    """The loss has the L2 terms of both layers; the rate counts batches of one worker."""
    config = script.DeploymentConfig(
        clone_on_cpu=True, replica_id=1, num_replicas=2, num_ps_tasks=1
    )
    script.build(script.MnistOptions(), config)
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 2
    assert [v.shape.as_list() for v in tf.trainable_variables()] == [
        [784, 500],
        [500],
        [500, 10],
        [10],
    ]
    assert {v.device for v in tf.global_variables()} == {"/job:ps/task:0/device:CPU:0"}
    devices = {op.device for op in tf.get_default_graph().get_operations() if op.device}
    assert devices == {"/job:ps/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0"}


@pytest.mark.one_mode
@pytest.mark.slow
def test_without_a_cluster(tmp_path, monkeypatch, capsys):
    """Without the description of a cluster one process trains by itself."""
    for name in ("TF_CONFIG", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    assert script.main(["mnist", f"--train_dir={tmp_path}", "--max_steps=5"]) == 0
    assert "test accuracy at step 5: " in capsys.readouterr().out


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--worker_hosts=nowhere"], "worker_hosts[0] must be host:port, such as"),
        (
            ["--worker_hosts=127.0.0.1:1,b:1"],
            "ps_hosts must be at least 1 with worker_hosts=2, got 0",
        ),
        (
            ["--worker_hosts=127.0.0.1:1,b:1", "--ps_hosts=c:1", "--task_id=4"],
            "task_id must be at least 0 and less than the 2 tasks of worker_hosts, got 4",
        ),
        (["--data_dir={}/none"], "data_dir of dataset 'mnist' must be a"),
        (["--data_dir={}"], "data_dir must have files mnist_train*"),
        (
            ["--eval_every_n_steps=5"],
            "eval_every_n_steps must go with a function `evaluate`, got 5 without",
        ),
    ],
)
def test_errors_name_the_flag(tmp_path, monkeypatch, capsys, flags, words):
    """A mistake is one line that begins with the flag."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    arguments = [each.format(tmp_path) for each in (*flags, "--train_dir={}/run")]
    assert script.main(["mnist", *arguments]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {words}"), line
