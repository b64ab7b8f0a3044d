"""Trackers get what the files of a run have; one that fails ends nothing."""

import importlib.util
import threading

import pytest
import tensorflow.compat.v1 as tf

from model_deploy.commands import read_checked
from model_deploy.runs import read_metrics
from model_deploy.trackers import NAMES, Sending, TrackedRun, check_names, send_model
from tests.training.halving import run_halving

pytestmark = pytest.mark.one_mode


class Notebook:
    """A tracker that keeps what it is told.

    Args:
      fails: names of methods, each with how many of its next calls raise an error.
    """

    name = "notebook"

    def __init__(self, **fails):
        self.told, self._fails = [], fails

    def start(self, run):
        self._take("start", run.name, run.options.get("max_steps"), run.known_as)
        return run.known_as or "first"

    def log(self, step, values):
        self._take("log", step, dict(values))

    def file(self, path, kind):
        self._take("file", path.rpartition("/")[2], kind)

    def end(self, how):
        self._take("end", how)

    def _take(self, method, *values):
        assert threading.current_thread().name == self.name
        if self._fails.get(method, 0) > 0:
            self._fails[method] -= 1
            raise OSError(28, "No space left on device")
        self.told.append((method, *values))


def _evaluate(checkpoint):
    return {"accuracy": 0.5, "log_loss": float("nan")}


def test_a_run(tmp_path):
    """It gets settings, the finite numbers of each line of `metrics.jsonl`, pictures, the end."""
    told = Notebook()
    run = {"evaluate": _evaluate, "eval_every_n_steps": 2, "log_every_n_steps": 1}
    run_halving(tmp_path / "run", 3, trackers=[told], **run)
    expected = [
        (
            "log",
            line.pop("step"),
            {key: value for key, value in line.items() if isinstance(value, int | float)},
        )
        for line in read_metrics(tmp_path / "run")
    ]
    assert told.told[0] == ("start", "run", 3, None)
    assert told.told[1:-2] == expected
    assert {"loss", "images_per_sec"} <= expected[0][2].keys()
    assert any("accuracy" in values and "log_loss" not in values for *_, values in expected)
    assert told.told[-2:] == [("file", "training.png", "picture"), ("end", "finished")]


def test_going_on(tmp_path):
    """A later process goes on with the same run, unless it begins anew; so does a model."""
    run_halving(tmp_path, 1, trackers=[Notebook()])
    assert read_checked(tmp_path / "trackers.json") == {"notebook": "first"}
    again = Notebook()
    run_halving(tmp_path, 2, trackers=[again])
    assert again.told[0] == ("start", tmp_path.name, 2, "first")
    later = Notebook()
    send_model(str(tmp_path), [later], "some/model.keras")
    assert later.told[0][-1] == "first"
    assert later.told[1] == ("file", "model.keras", "model")
    (tmp_path / "trackers.json").write_text("{")
    run_halving(tmp_path, 3, trackers=[anew := Notebook()])
    assert anew.told[0][-1] is None


FAILURES = {
    "once": ({"log": 1}, 0),
    "where it begins": ({"start": 1}, 0),
    "for two lines": ({"log": 4}, 2),
    "for ever": ({"log": 9999}, 4),
    "in all methods": ({"start": 9999}, 6),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures(tmp_path, capsys, case):
    """A failure is said in one line, once; what fails twice is lost, and counted at the end."""
    fails, lost = FAILURES[case]
    told = Notebook(**fails)
    assert run_halving(tmp_path, 4, trackers=[told], log_every_n_steps=1).global_step == 4
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    failure = "warning: tracker notebook fails: [Errno 28] No space left on device; steps go on"
    of_lost = [f"warning: tracker notebook: {lost} records are not sent"] if lost else []
    assert said == [failure, *of_lost]


def test_one_that_does_not_answer(capsys):
    """It holds nothing up: the end waits for so many seconds."""
    answer = threading.Event()

    class Silent(Notebook):
        def log(self, step, values):
            answer.wait(60)

    slow = Sending(Silent(), TrackedRun("run", {}, None), lambda known_as: None)
    try:
        for step in range(3):
            slow.log(step, {"loss": 1.0})
        slow.end("finished", 0.2)
        lost = "4 records are not sent: it did not answer within 0.2 s"
        assert f"warning: tracker notebook: {lost}" in capsys.readouterr().err
    finally:
        answer.set()


@pytest.mark.parametrize(
    ("error", "how"), [(KeyboardInterrupt, "stopped"), (ArithmeticError, "failed")]
)
def test_the_end(tmp_path, error, how):
    """It is told where the run does not come to its last step."""

    class Stop(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            raise error

    told = Notebook()
    with pytest.raises(error):
        run_halving(tmp_path, 3, trackers=[told], hooks=[Stop()])
    assert told.told[-1] == ("end", how)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("comet", "tracker must be of mlflow, wandb, aim, got 'comet'"),
        ("", "tracker must be of mlflow, wandb, aim, got ''"),
    ],
)
def test_names(tmp_path, text, message):
    """A name that is no tracker's is refused before anything is made."""
    with pytest.raises(ValueError, match=message):
        run_halving(tmp_path / "run", 1, tracker=text)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", NAMES)
def test_missing_packages(name):
    """One whose package is missing is refused at once, with the command that installs it."""
    if importlib.util.find_spec(name) is None:
        with pytest.raises(ValueError, match=rf"got none: pip install 'model_deploy\[{name}\]'"):
            check_names(name)
    else:
        assert check_names(name) == [name]
    with pytest.raises(ValueError, match=f"name each tracker once, got '{name},{name}'"):
        check_names(f"{name},{name}")
