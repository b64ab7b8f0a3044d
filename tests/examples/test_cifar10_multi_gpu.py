"""Hand-written towers do in a step what one tower does with the whole batch."""

import re
import types

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from examples import cifar10_multi_gpu as script
from model_deploy.runs import read_metrics
from tests.inputs import files


def run(folder, **settings):
    """Runs the program; returns its exit code."""
    flags = {"train_dir": folder, "batch_size": 8, "max_steps": 4} | settings
    return script.main(["cifar10", *(f"--{name}={value}" for name, value in flags.items())])


def logged(folder, key):
    """The values of `key` in the lines of the log, by step."""
    return {entry["step"]: entry[key] for entry in read_metrics(folder)}


@pytest.fixture
def no_evaluation(monkeypatch):
    """The program ends without its test."""
    result = types.SimpleNamespace(global_step=0, accuracy=0.0)
    monkeypatch.setattr(script.training, "evaluate", lambda *_, **__: result)


@pytest.mark.slow
@pytest.mark.usefixtures("no_evaluation")
def test_two_towers_are_one_with_the_whole_batch(tmp_path):
    """Losses and learning rates of two towers of 8 images are those of one of 16."""
    # In an epoch of 1437 images there are 89 whole steps: the rate falls every 2.
    settings = {"epochs_per_decay": 2 / 89, "log_every_n_steps": 1}
    two, one = tmp_path / "two", tmp_path / "one"
    assert run(two, num_towers=2, batch_size=8, **settings) == 0
    assert run(one, num_towers=1, batch_size=16, **settings) == 0
    losses = logged(two, "loss")
    assert list(losses) == [1, 2, 3, 4]
    # The order of additions differs.
    np.testing.assert_allclose([*losses.values()], [*logged(one, "loss").values()], rtol=1e-3)
    rates = logged(two, "learning_rate")
    np.testing.assert_allclose([*rates.values()], [0.05, 0.05, 0.005, 0.005], rtol=1e-5)
    assert rates == logged(one, "learning_rate")


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.usefixtures("no_evaluation")
def test_rates_are_those_of_all_towers(tmp_path):
    """Images per second times seconds per batch is the number of images of all towers."""
    assert run(tmp_path, num_towers=3, batch_size=16, log_every_n_steps=2) == 0
    rates, secs = logged(tmp_path, "images_per_sec"), logged(tmp_path, "secs_per_batch")
    assert list(rates) == [2, 4]
    assert [rates[step] * secs[step] for step in rates] == pytest.approx([48, 48])


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.usefixtures("no_evaluation")
def test_summaries(tmp_path):
    """There are summaries of loss, learning rate, variables and gradients every so many steps."""
    assert run(tmp_path, max_steps=3, save_summaries_steps=2) == 0
    (path,) = tmp_path.glob("events*")
    tags = {
        event.step: {value.tag for value in event.summary.value}
        for event in tf.train.summary_iterator(str(path))
        if event.summary.value
    }
    assert list(tags) == [2, 3]
    assert {"loss", "learning_rate", "conv1/weights/values", "conv1/weights/gradients"} <= tags[2]


@pytest.mark.one_mode
@pytest.mark.slow
def test_checkpoints(tmp_path, capsys):
    """They come at intervals and at the end; a run goes on from the newest one."""
    assert run(tmp_path, max_steps=3, save_interval_steps=2) == 0
    assert {path.stem for path in tmp_path.glob("model*.index")} == {"model.ckpt-2", "model.ckpt-3"}
    assert run(tmp_path, max_steps=5) == 0
    assert list(logged(tmp_path, "loss")) == [3, 5]
    assert "test accuracy at step 5: " in capsys.readouterr().out
    averaged = {name for name, _ in tf.train.list_variables(str(tmp_path / "model.ckpt-5"))}
    assert "conv1/weights/ExponentialMovingAverage" in averaged


@pytest.mark.one_mode
@pytest.mark.slow
def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, capsys):
    """The error is one line, and nothing is saved."""
    assert run(tmp_path, learning_rate=1e20) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(r"error: the loss must be finite, got (nan|inf) at step \d, .*\n", error)
    assert not list(tmp_path.glob("model*"))


@pytest.mark.one_mode
@pytest.mark.slow
def test_cifar10_files(tmp_path, capsys):
    """With a folder of CIFAR-10's TFRecords, those are read."""
    data = tmp_path / "data"
    for split in ("train", "test"):
        files.write_examples(data, [20], (32, 32, 3), name="cifar10", split=split)
    (data / "labels.txt").unlink()
    assert run(tmp_path / "run", data_dir=data, batch_size=4, max_steps=2) == 0
    assert "test accuracy at step 2: " in capsys.readouterr().out


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"data_dir": "{}/none"}, "data_dir of dataset 'cifar10' must be"),
        ({"data_dir": "{}"}, "data_dir must have files cifar10_train*"),
        (
            {"eval_every_n_steps": 5},
            "eval_every_n_steps must go with a function `evaluate`, got 5 without",
        ),
    ],
)
def test_errors_name_the_flag(tmp_path, capsys, settings, words):
    """A mistake is one line that begins with the flag."""
    flags = {name: str(value).format(tmp_path) for name, value in settings.items()}
    assert run(tmp_path / "run", **flags) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {words}"), line


def test_devices():
    """Each tower is on its device, the variables are on the CPU."""
    devices = ["/device:GPU:0", "/device:GPU:1"]
    with tf.device(script.CPU):
        script.build(script.Cifar10Options(batch_size=4), devices)
    graph = tf.get_default_graph()
    for i, device in enumerate(devices):
        assert graph.get_operation_by_name(f"tower_{i}/conv1/Conv2D").device == device
    assert {variable.device for variable in tf.global_variables()} == {script.CPU}
