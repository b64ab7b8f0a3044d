"""A run that gets no better ends, at the step that a reader can compute, killed or not."""

import json

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.commands import read_checked
from model_deploy.training.patience import Patience, is_falling
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


def scores(values, name="auc"):
    """An evaluation that finds a value by the step of the checkpoint, 0.1 after the last."""
    return lambda path: {name: dict(enumerate(values, 1)).get(int(path.rpartition("-")[2]), 0.1)}


# Values of evaluations after each step; what the settings are; the step at which the run ends.
RUNS = {
    "rises": ([0.1, 0.2, 0.3, 0.2, 0.25, 0.3], {"stop_patience": 3}, 6),
    "is better once more": ([0.1, 0.2, 0.1, 0.3, 0.1, 0.1], {"stop_patience": 2}, 6),
    "min_delta": ([0.1, 0.14, 0.22, 0.3], {"stop_patience": 2, "stop_min_delta": 0.1}, 5),
    "of equal steps": ([0.5, 0.5, 0.5], {"stop_patience": 2}, 3),
    "NaN": ([float("nan"), float("nan"), 0.5], {"stop_patience": 2}, 2),
    "min": ([0.3, 0.2, 0.3, 0.3], {"stop_patience": 2, "stop_direction": "min"}, 4),
    "not at all": ([0.5], {"stop_patience": 9}, 7),
    "at a value": ([0.5, 0.6, 0.7], {"stop_patience": 9, "stop_at_metric": 0.7}, 3),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_end(tmp_path, name):
    """A run of at most 7 steps ends after so many evaluations without improvement."""
    values, options, last_step = RUNS[name]
    run = {"evaluate": scores(values), "stop_metric": "auc", "eval_every_n_steps": 1, **options}
    assert run_halving(tmp_path, 7, **run).global_step == last_step


def test_a_loss_falls(tmp_path, capsys):
    """Of a metric named a loss the lowest is best: kept, waited for, and stopped at."""
    evaluate = scores([0.7, 0.5, 0.4, 0.6, 0.6], "log_loss")
    options = {"evaluate": evaluate, "metric": "log_loss", "eval_every_n_steps": 1}
    run_halving(tmp_path / "kept", 9, stop_patience=2, **options)
    assert tf.train.latest_checkpoint(str(tmp_path / "kept" / "best")).endswith("model.ckpt-3")
    said = "log_loss has not improved in 2 evaluations (the best is of step 3): the run ends"
    assert said in capsys.readouterr().err
    assert run_halving(tmp_path / "at", 9, stop_at_metric=0.5, **options).global_step == 2


def test_going_on(tmp_path, capsys):
    """A run that is stopped in parts ends where an undisturbed one ends, and is over then."""
    options = {"evaluate": scores([0.1, 0.4, 0.3, 0.2, 0.3]), "metric": "auc"}
    options |= {"eval_every_n_steps": 1, "stop_patience": 3}
    assert run_halving(tmp_path / "whole", 9, **options).global_step == 5
    for last_step in (1, 3, 4):
        run_halving(tmp_path / "parts", last_step, **options)
    assert run_halving(tmp_path / "parts", 9, **options).global_step == 5
    capsys.readouterr()
    assert run_halving(tmp_path / "parts", 9, **options) == (5, None)
    assert "(the best is of step 2): no more steps are made" in capsys.readouterr().err
    # With more patience it goes on: 0.1 at steps 6 and 7.
    assert run_halving(tmp_path / "parts", 9, **options | {"stop_patience": 5}).global_step == 7


def _write(path, values, metric="auc"):
    path.parent.mkdir(exist_ok=True)
    lines = [{"global_step": step, metric: value} for step, value in values]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + "{broken")


def test_the_evaluator(tmp_path, capsys):
    """The chief ends where an evaluator's file says so, at its next look, and is over then."""
    path = tmp_path / "eval_test" / "evaluations.jsonl"
    options = {"stop_by": "eval_test", "stop_metric": "auc", "log_every_n_steps": 3}
    assert run_halving(tmp_path, 4, stop_patience=2, **options).global_step == 4
    _write(path, [(2, 0.5), (4, None)])
    assert run_halving(tmp_path, 7, stop_patience=2, **options).global_step == 7

    class Evaluator(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.report.step == 8:
                _write(path, [(6, 0.4), (2, 0.5), (4, None)])

    options["hooks"] = [Evaluator()]
    assert run_halving(tmp_path, 20, stop_patience=2, **options).global_step == 9
    said = "auc has not improved in 2 evaluations (the best is of step 2): the run ends"
    assert capsys.readouterr().err.count(said) == 1
    assert run_halving(tmp_path, 20, stop_patience=2, **options) == (9, None)
    assert run_halving(tmp_path, 20, stop_at_metric=0.4, **options) == (9, None)
    assert "auc 0.4 is reached at step 2: the run ends" in capsys.readouterr().err
    options["stop_metric"] = "recall"
    with pytest.raises(ValueError, match=r"stop_metric must be one of auc, global_step in .*jsonl"):
        run_halving(tmp_path, 20, stop_patience=2, **options)


def test_what_came_after_is_forgotten(tmp_path):
    """A run that goes on from an earlier checkpoint counts the evaluations up to that one."""
    options = {"metric": "auc", "falls": False, "most": 2}
    patience = Patience(str(tmp_path), **options)
    for step, value in ((1, 0.5), (2, 0.4), (3, 0.3)):
        patience.add(step, value)
    assert patience.is_over
    assert Patience(str(tmp_path), **options, first_step=3).is_over
    earlier = Patience(str(tmp_path), **options, first_step=2)
    assert not earlier.is_over
    earlier.add(3, 0.6)
    assert not Patience(str(tmp_path), **options, first_step=3).is_over
    record = read_checked(tmp_path / "best" / "evaluations.json")
    assert record == {"metric": "auc", "values": [[1, 0.5], [2, 0.4], [3, 0.6]]}
    assert not Patience(str(tmp_path), **{**options, "metric": "loss"}, first_step=9).is_over


@pytest.mark.parametrize(
    ("metric", "direction", "falls"),
    [
        ("total_loss", "auto", True),
        ("calibration_error", "auto", True),
        ("recall_at_5", "auto", False),
        ("my_loss", "max", False),
        ("perplexity", "min", True),
    ],
)
def test_directions(metric, direction, falls):
    """Losses and errors fall, other metrics rise, unless it is said."""
    assert is_falling(metric, direction) is falls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_patience": 2}, "stop_patience must go with eval_every_n_steps, got 2 alone"),
        (
            {"stop_min_delta": 0.5},
            "stop_min_delta must go with stop_patience, got 0.5 alone",
        ),
        (
            {"stop_by": "eval_test"},
            "stop_by must go with stop_at_metric or stop_patience, got 'eval",
        ),
        (
            {"stop_by": "eval_test", "stop_patience": 1, "eval_every_n_steps": 2},
            "stop_by must be None with eval_every_n_steps, got 'eval_test' with 2",
        ),
        ({"stop_patience": 0, "eval_every_n_steps": 1}, "stop_patience must be at least 1, got 0"),
        ({"stop_direction": "up"}, "stop_direction must be one of auto, max, min, got 'up'"),
    ],
)
def test_rejects(tmp_path, options, message):
    """Settings that do not go together name themselves."""
    with pytest.raises(ValueError, match=message):
        run_halving(tmp_path, 2, **options)
