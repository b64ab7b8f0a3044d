"""Hand-written towers do in a step what one tower does with the whole batch."""

import re
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from examples import cifar10_multi_gpu as script
from tests.inputs import files

LINE = re.compile(r"step (\d+), loss = ([\d.]+) \(([\d.]+) examples/sec; ([\d.]+) sec/batch\)")


def run(folder, **settings):
    """Runs the program; returns its exit code."""
    flags = {"train_dir": folder, "batch_size": 8, "max_steps": 4} | settings
    return script.main(["cifar10", *(f"--{name}={value}" for name, value in flags.items())])


def logged(text):
    """Step, loss, examples/sec and sec/batch of each line."""
    return np.array([[float(part) for part in line] for line in LINE.findall(text)])


def scalars(folder, tag):
    """The values of a summary, by step."""
    (path,) = folder.glob("events*")
    return {
        event.step: value.simple_value
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == tag
    }


@pytest.fixture
def no_evaluation(monkeypatch):
    """The program ends without its test."""
    result = types.SimpleNamespace(global_step=0, accuracy=0.0)
    monkeypatch.setattr(script.training, "evaluate", lambda *_, **__: result)


@pytest.mark.usefixtures("no_evaluation")
def test_two_towers_are_one_with_the_whole_batch(tmp_path, monkeypatch, capsys):
    """Losses and learning rates of two towers of 8 images are those of one of 16."""
    for name in ("LOG_STEPS", "SUMMARY_STEPS"):
        monkeypatch.setattr(script, name, 1)
    # In an epoch of 1437 images there are 90 steps: the rate falls every 2.
    settings = {"epochs_per_decay": 2 / 90}
    assert run(tmp_path / "two", num_towers=2, batch_size=8, **settings) == 0
    two = logged(capsys.readouterr().out)
    assert run(tmp_path / "one", num_towers=1, batch_size=16, **settings) == 0
    one = logged(capsys.readouterr().out)
    assert two[:, 0].tolist() == [1, 2, 3, 4]
    # The order of additions differs.
    np.testing.assert_allclose(two[:, 1], one[:, 1], rtol=1e-3)
    rates = scalars(tmp_path / "two", "learning_rate")
    np.testing.assert_allclose(list(rates.values()), [0.05, 0.05, 0.005, 0.005], rtol=1e-5)
    assert rates == scalars(tmp_path / "one", "learning_rate")


@pytest.mark.usefixtures("no_evaluation")
def test_rates_are_those_of_all_towers(tmp_path, monkeypatch, capsys):
    """Examples/sec times sec/batch is the number of images of all towers."""
    monkeypatch.setattr(script, "LOG_STEPS", 2)
    assert run(tmp_path, num_towers=3, batch_size=16) == 0
    lines = logged(capsys.readouterr().out)
    assert lines[:, 0].tolist() == [2, 4]
    np.testing.assert_allclose(lines[:, 2] * lines[:, 3], 3 * 16, rtol=0.05)  # as printed


def test_checkpoints(tmp_path, monkeypatch, capsys):
    """They come at intervals and at the end; a run goes on from the newest one."""
    monkeypatch.setattr(script, "SAVE_STEPS", 2)
    assert run(tmp_path, max_steps=3) == 0
    assert {path.stem for path in tmp_path.glob("model*.index")} == {"model.ckpt-2", "model.ckpt-3"}
    capsys.readouterr()
    assert run(tmp_path, max_steps=5) == 0
    out = capsys.readouterr().out
    assert logged(out)[:, 0].tolist() == [5]
    assert "test accuracy at step 5: " in out
    averaged = {name for name, _ in tf.train.list_variables(str(tmp_path / "model.ckpt-5"))}
    assert "conv1/weights/ExponentialMovingAverage" in averaged


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, capsys):
    """The error is one line, and nothing is saved."""
    assert run(tmp_path, learning_rate=1e20) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: the loss must be finite, got (nan|inf) at step \d\n", error)
    assert not list(tmp_path.glob("model*"))


def test_cifar10_files(tmp_path, capsys):
    """With a folder of CIFAR-10's TFRecords, those are read."""
    data = tmp_path / "data"
    for split in ("train", "test"):
        files.write_examples(data, [20], (32, 32, 3), name="cifar10", split=split)
    (data / "labels.txt").unlink()
    assert run(tmp_path / "run", data_dir=data, batch_size=4, max_steps=2) == 0
    assert "test accuracy at step 2: " in capsys.readouterr().out


def test_devices():
    """Each tower is on its device, the variables are on the CPU."""
    devices = ["/device:GPU:0", "/device:GPU:1"]
    with tf.device(script.CPU):
        script.build(script.Cifar10Options(batch_size=4), devices)
    graph = tf.get_default_graph()
    for i, device in enumerate(devices):
        assert graph.get_operation_by_name(f"tower_{i}/conv1/Conv2D").device == device
    assert {variable.device for variable in tf.global_variables()} == {script.CPU}
