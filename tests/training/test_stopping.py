"""Signals end a run in good order, and evaluations end it when it is good enough."""

import json
import os
import signal
import sys
import textwrap
import time

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.runs import Run, read_metrics, read_run
from model_deploy.training.shown.metrics import MetricsLog
from model_deploy.training.shown.plots import describe_run, lowest, panels_of, plot_training
from model_deploy.training.timing import Every
from tests.processes.harness import Processes
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


class SignalAt(tf.train.SessionRunHook):
    """Sends a signal to its own process before a step."""

    def __init__(self, number, step):
        self._number, self._step = number, step

    def due(self, step):
        return step == self._step

    def before_run(self, run_context):
        os.kill(os.getpid(), self._number)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal(tmp_path, capsys, number):
    """The step is finished and saved; the exit code is that of the signal."""
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as stop:
        run_halving(tmp_path, 9, hooks=[SignalAt(number, 3)])
    assert stop.value.code == 128 + number
    assert (tmp_path / "model.ckpt-3.index").exists()
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if not line.startswith("effective time")][-2:] == [
        f"{number.name}: finishing the step and saving; once more to exit at once",
        f"stopped by {number.name} at step 3",
    ]
    assert signal.getsignal(number) == before
    assert run_halving(tmp_path, 4) == (4, 2**-7)


LONG_STEP = """
    import sys, time
    import tensorflow.compat.v1 as tf
    import model_deploy

    tf.disable_eager_execution()

    def forever(weight):
        print("in the step", flush=True)
        time.sleep(1000)
        return weight

    def model_fn():
        weight = tf.get_variable("weight", [])
        tf.losses.add_loss(tf.square(weight) + tf.numpy_function(forever, [weight], tf.float32))

    config = model_deploy.DeploymentConfig(clone_on_cpu=True)
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    model = model_deploy.deploy(config, model_fn, optimizer=optimizer)
    model_deploy.train(model, sys.argv[1], max_steps=3)
"""


@pytest.mark.slow
def test_a_second_signal(tmp_path):
    """A second SIGTERM ends a process that is in the middle of a step."""
    (tmp_path / "program.py").write_text(textwrap.dedent(LONG_STEP))
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path)]
    with Processes(tmp_path) as processes:
        process = processes.start("program", command)
        process.wait_for_line("^in the step$")
        process.signal(signal.SIGTERM)
        process.wait_for_line("^SIGTERM: finishing the step")
        process.signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert "SIGTERM again: exiting without saving" in process.log


def evaluation(accuracies):
    """An evaluation that finds one value after the other, and notes what it was called with."""
    left, calls = iter(accuracies), []

    def evaluate(checkpoint):
        calls.append(checkpoint)
        return {"accuracy": next(left), "recall_at_5": 1.0}

    return evaluate, calls


def test_evaluations(tmp_path, capsys):
    """Every so many steps and at the end the newest checkpoint is evaluated; the best is kept. A
    run may end at the first evaluation that is good enough.
    """
    evaluate, calls = evaluation([0.5, 0.75, 0.7])
    run_halving(tmp_path, 5, evaluate=evaluate, eval_every_n_steps=2, keep_checkpoints=1)
    assert calls == [str(tmp_path / f"model.ckpt-{step}") for step in (2, 4, 5)]
    assert tf.train.latest_checkpoint(str(tmp_path / "best")).endswith("model.ckpt-4")
    found = [each for each in read_metrics(tmp_path) if "accuracy" in each]
    assert [(each["step"], each["accuracy"]) for each in found] == [(2, 0.5), (4, 0.75), (5, 0.7)]
    shown = "evaluation at step 4:  accuracy 0.7500  recall_at_5 1.0000"
    assert shown in capsys.readouterr().err.splitlines()
    evaluate, _ = evaluation([0.5, 0.75])
    options = {"evaluate": evaluate, "eval_every_n_steps": 2, "stop_at_metric": 0.75}
    assert run_halving(tmp_path / "other", 9, **options) == (4, 2**-7)
    assert "accuracy 0.75 is reached: the run ends" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"eval_every_n_steps": 2},
            "eval_every_n_steps must go with a function `evaluate`, got 2 without",
        ),
        ({"stop_at_metric": 0.5}, "stop_at_metric must go with eval_every_n_steps, got 0.5 alone"),
        (
            {"eval_every_n_steps": 1, "evaluate": lambda _: {"loss": 1.0}},
            "metric must be one of loss, got 'accuracy'",
        ),
    ],
)
def test_rejects(tmp_path, options, message):
    """Settings that do not go together name themselves."""
    with pytest.raises(ValueError, match=message):
        run_halving(tmp_path, 2, **options)


def test_metrics_and_picture(tmp_path):
    """Each log is an object in metrics.jsonl; the picture is drawn from them."""
    run_halving(tmp_path, 20, images_per_step=64, unit="texts", learning_rate=0.5)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [each["step"] for each in lines] == [10, 20]
    assert lines[0]["loss"] == 2**-19
    assert lines[0]["learning_rate"] == 0.5
    assert lines[0]["waiting"] is None
    assert lines[0]["images_per_sec"] == pytest.approx(64 / lines[0]["secs_per_batch"])
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")


def test_metrics_after_a_kill(tmp_path):
    """A line that a killed run did not finish is kept, and does not spoil the next one. Without
    numbers there is no picture.
    """
    assert plot_training(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "lo')
    log = MetricsLog(str(tmp_path))
    log.add({"step": 3, "loss": float("nan")})
    log.close()
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 2.0}, {"step": 3, "loss": None}]
    lines = (tmp_path / "metrics.jsonl").read_text().split("\n")
    assert lines[1:] == ['{"step": 2, "lo', '{"step": 3, "loss": null}', ""]


@pytest.mark.parametrize(
    ("options", "title"),
    [
        ({"model_name": "lenet", "dataset_name": "digits"}, "lenet on digits, accuracy 0.9000"),
        ({}, "runs/a, accuracy 0.9000"),
    ],
)
def test_title_of_the_picture(options, title):
    """The picture says what was trained, and how well it does."""
    metrics = [{"step": 1, "accuracy": 0.5}, {"step": 2, "accuracy": 0.9}]
    assert describe_run(Run("runs/a", options, metrics)) == title


@pytest.mark.parametrize(
    ("steps", "drawn"),
    [([20, 40, 60], [20, 40, 60]), ([20, 40, 50], [20, 40]), ([20, 30], [20, 30]), ([20], [20])],
)
def test_last_rate(steps, drawn, tmp_path):
    """The rate of a last interval that the end cuts short is left out of the picture."""
    lines = [json.dumps({"step": step, "images_per_sec": 100.0}) + "\n" for step in steps]
    (tmp_path / "metrics.jsonl").write_text("".join(lines))
    [(_, [(_, points)])] = panels_of(read_run(str(tmp_path)))
    assert points == [(step, 100.0) for step in drawn]


def test_the_first_steps_do_not_flatten_a_curve():
    """The axis of accuracies begins at the lowest one after a tenth of the steps."""
    curves = [("training", [(10, 0.2), (40, 0.8), (400, 1.0)]), ("held out", [(400, 0.7)])]
    assert lowest(curves) == 0.2
    assert lowest(curves[:1], but_first=0.1) == 0.8
    assert lowest(curves, but_first=0.1) == 0.7


def test_every(monkeypatch):
    """Due at multiples of the steps, or after so many seconds, whichever comes first."""
    clock = {"now": 0.0}
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    every = Every(steps=10, secs=5.0, first_step=17)
    assert [every.due(step) for step in (19, 23)] == [False, True]
    every.done(23)
    assert not every.due(29)
    clock["now"] = 5.0
    assert every.take(24)
    assert not every.due(24)
