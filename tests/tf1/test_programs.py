"""Programs as they were written for TensorFlow 1 run to their end, and learn."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy.launch import ReservedPorts
from model_deploy.tf1.datasets import dataset_utils
from tests.checkpoint_values import checkpoint_values
from tests.inputs import files
from tests.processes.harness import ROOT, Processes
from tests.tf1.conftest import TF1

PROGRAMS = Path(__file__).parent / "programs"
pytestmark = [pytest.mark.slow, pytest.mark.one_mode]


@pytest.fixture
def run(run_python):
    """Runs a program to its end; returns what it printed, and the line that says what it got."""

    def run_program(program, *flags, options=()):
        status, log = run_python(*TF1[1:], *options, PROGRAMS / program, *flags)
        assert status == 0, log
        [line] = re.findall(r".* runs as a program of TensorFlow 1, .*; it gets (.*)\n", log)
        return log, line

    return run_program


def test_cifar10_towers(run, tmp_path):
    """Hand-written towers train from queues: the loss falls, steps are counted."""
    for number in range(1, 6):
        records, _ = files.cifar_records(range(10))
        (tmp_path / f"data_batch_{number}.bin").write_bytes(records)
    flags = f"--data_dir={tmp_path}", f"--train_dir={tmp_path / 'run'}", "--num_gpus=2"
    log, got = run("cifar10/cifar10_multi_gpu_train.py", *flags, "--max_steps=51")
    losses = [float(found) for found in re.findall(r"step \d+, loss = ([\d.]+)", log)]
    assert len(losses) == 11
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    assert "tensorflow.contrib" not in got  # an attribute, not an import
    saved = checkpoint_values(tmp_path / "run")
    assert saved["global_step"] == 51
    averages = [name for name in saved if name.endswith("/ExponentialMovingAverage")]
    assert len(averages) == 4


def test_mnist_on_parameter_servers(tmp_path):
    """Two workers and a parameter server, each a process with its flags, make the global steps."""
    files.write_mnist(tmp_path / "data", count=40, compress=True)
    with ReservedPorts(3) as ports, Processes(tmp_path) as processes:
        hosts = (
            f"--ps_hosts={ports.addresses[0]}",
            f"--worker_hosts={','.join(ports.addresses[1:])}",
            f"--data_dir={tmp_path / 'data'}",
            f"--train_dir={tmp_path / 'run'}",
        )

        def start(job, task):
            flags = [*hosts, f"--job_name={job}", f"--task_index={task}"]
            program = str(PROGRAMS / "mnist_replica.py")
            return processes.start(f"{job}-{task}", [*TF1, program, *flags])

        start("ps", 0)
        workers = [start("worker", task) for task in (0, 1)]
        for worker in workers:
            assert worker.wait() == 0, worker.log
            found = worker.wait_for_line(r"validation cross entropy = ([\d.]+)")
            assert float(found[1]) > 0
    assert checkpoint_values(tmp_path / "run")["global_step"] >= 40


@pytest.mark.parametrize("flags", [("--cells=static", "--async"), ("--cells=dynamic",)])
def test_lstm_learns_texts(run, flags):
    """An LSTM on two devices tells praise from complaints, synchronously or not."""
    data = ROOT / "examples" / "data" / "sentences.tsv"
    log, _ = run("lstm_texts.py", f"--data_file={data}", *flags)
    assert float(re.search(r"accuracy ([\d.]+)", log)[1]) > 0.8


def _write_cifar10_records(folder, count):
    """CIFAR-10 as TF-Slim's converter wrote it: squares, whose brightness is the label."""
    folder.mkdir(exist_ok=True)
    random = np.random.RandomState(0)
    for split in ("train", "test"):
        records = []
        for number in range(count):
            label = number % 10
            image = random.randint(0, 30, [32, 32, 3]) + 22 * label
            encoded = files.encode(image.astype(np.uint8))
            example = dataset_utils.image_to_tfexample(encoded, b"png", 32, 32, label)
            records.append(example.SerializeToString())
        files.write_records(folder / f"cifar10_{split}.tfrecord", records)


def test_slim_scripts(run, tmp_path):
    """Slim's scripts train on two clones, go on from a checkpoint, evaluate and export."""
    _write_cifar10_records(tmp_path / "data", 40)
    data, train_dir = f"--dataset_dir={tmp_path / 'data'}", tmp_path / "run"
    flags = data, f"--train_dir={train_dir}", "--num_clones=2", "--clone_on_cpu"
    _, got = run("slim_scripts/train.py", *flags, "--max_number_of_steps=6")
    for name in ("datasets.dataset_factory", "deployment.model_deploy", "nets.nets_factory"):
        assert name in got
    assert checkpoint_values(train_dir)["global_step"] == 6
    start = f"--checkpoint_path={train_dir}", "--checkpoint_exclude_scopes=CifarNet/logits"
    fine = tmp_path / "fine"
    flags = data, f"--train_dir={fine}", *start, "--trainable_scopes=CifarNet/logits"
    steps = "--max_number_of_steps=4", "--moving_average_decay=0.9"
    run("slim_scripts/train.py", *flags, *steps, "--clone_on_cpu")
    old, new = checkpoint_values(train_dir), checkpoint_values(fine)
    np.testing.assert_array_equal(old["CifarNet/conv1/weights"], new["CifarNet/conv1/weights"])
    assert not np.array_equal(old["CifarNet/logits/weights"], new["CifarNet/logits/weights"])
    flags = data, f"--checkpoint_path={train_dir}", f"--eval_dir={tmp_path / 'eval'}"
    log, _ = run("slim_scripts/evaluate.py", *flags, "--max_num_batches=5")
    assert 0 <= float(re.search(r"accuracy ([\d.]+)", log)[1]) <= 1
    frozen = tmp_path / "frozen.pb"
    flags = f"--checkpoint_path={train_dir}", f"--output_file={frozen}"
    log, _ = run("slim_scripts/export.py", *flags)
    assert re.search(r"wrote frozen.pb with \d+ nodes, CifarNet/\w*Predictions", log)
    graph = tf.GraphDef.FromString(frozen.read_bytes())
    assert not [node for node in graph.node if "Variable" in node.op]


def test_digits_are_written_backwards(run):
    """An encoder, a decoder with attention and beams learn to reverse what they read."""
    log, got = run("reverse_digits.py", "--attention=bahdanau")
    assert float(re.search(r"sequences right: ([\d.]+)", log)[1]) > 0.9
    assert "tensorflow.contrib.seq2seq" in got


def test_words_are_tagged(run):
    """A CRF above fused LSTMs learns names and places, from buckets of like lengths."""
    log, _ = run("tagger.py")
    assert float(re.search(r"accuracy ([\d.]+)", log)[1]) > 0.95
    assert "first tags: NAME O O PLACE" in log


@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_weights_are_standardized(run, kind, tmp_path):
    """A layer derived from Keras' convolves by its own weights; averages are what is saved."""
    profiled = kind == "reference"
    train_dir, profile = tmp_path / "run", tmp_path / "profile"
    flags = [f"--train_logdir={train_dir}"] + [f"--profile_logdir={profile}"] * profiled
    options = ["--resource_variables"] * (kind == "resource")
    log, _ = run("weight_standardized.py", *flags, options=options)
    assert "trained to a loss below 0.6: True" in log
    assert profile.exists() == profiled
    saved = checkpoint_values(train_dir)
    assert saved["global_step"] == 30
    values, averages = (
        saved[f"standardized/kernel{end}"] for end in ("/ExponentialMovingAverage", "")
    )
    # Both have moved, and the average stays behind.
    assert values.shape == averages.shape == (3, 3, 3, 8)
    assert not np.array_equal(values, averages)
    # The losses of the model and of its regularizer have averages.
    assert len([name for name in saved if name.endswith("/avg")]) == 2


def test_files_that_are_there_are_converted(run, tmp_path):
    """Files of MNIST's names with other sums are used and said to be, though `datasets` beside the
    program has data; a module that `datasets` does not have is an `ImportError`.
    """
    program = tmp_path / "program"
    shutil.copytree(PROGRAMS / "convert", program)
    (program / "datasets" / "mnist").mkdir(parents=True)
    (program / "datasets" / "mnist" / "labels.txt").write_text("0:zero\n")
    files.write_mnist(tmp_path / "data", count=12, compress=True)
    flags = "--dataset_name=mnist", f"--dataset_dir={tmp_path / 'data'}"
    log, _ = run(program / "download_and_convert_data.py", *flags)
    assert "has files of MNIST's names, which are taken as they are" in log
    written = str(tmp_path / "data" / "mnist_train.tfrecord")
    assert sum(1 for _ in tf.python_io.tf_record_iterator(written)) == 12
