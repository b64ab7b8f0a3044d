"""The files of an evaluation hold what it found, whole, in a stable order."""

import csv
import json
import os

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from matplotlib import image

from model_deploy.commands import read_checked, replaced_file
from model_deploy.evaluation import has_evaluation
from model_deploy.evaluation.confusion import confusion_figure
from model_deploy.training import Evaluation, EvaluationWriter, Predictions

pytestmark = pytest.mark.one_mode

NAMES = ["cat", "dog", "owl"]
# Of labels with probabilities 0.75, 0.25, 0.1 and 1.
LOG_LOSS = -np.log(0.75 * 0.25 * 0.1) / 4


def _evaluation(step=7, loss=0.5):
    """Four examples: two cats, one of them taken for a dog, and two dogs that are right."""
    predictions = Predictions(
        index=np.array([2, 3, 5, 8]),
        label=np.array([0, 0, 1, 1]),
        predicted=np.array([0, 1, 1, 1]),
        probability=np.array([0.75, 0.5, 0.1, 1.0], np.float32),
        label_probability=np.array([0.75, 0.25, 0.1, 1.0], np.float32),
        rank=np.array([0, 5, 0, 0]),
    )
    return Evaluation("run/model.ckpt-7", step, 3, predictions, loss, seconds=1.25)


def test_files(tmp_path):
    """`evaluation.json` has scores, classes and confusion matrix, and the facts given.
    `predictions.csv` has a line per example; its numbers are those of the float32. The picture is a
    PNG with pixels of more than one colour.
    """
    with EvaluationWriter(tmp_path / "new", NAMES, {"split": "test"}) as writer:
        writer.write(_evaluation())
    assert read_checked(tmp_path / "new" / "evaluation.json") == {
        "split": "test",
        "checkpoint": "run/model.ckpt-7",
        "global_step": 7,
        "examples": 4,
        "accuracy": 0.75,
        "recall_at_5": 0.75,
        "log_loss": pytest.approx(LOG_LOSS),
        "total_loss": 0.5,
        "seconds": 1.25,
        "classes": [
            {"name": "cat", "examples": 2, "accuracy": 0.5},
            {"name": "dog", "examples": 2, "accuracy": 1.0},
            {"name": "owl", "examples": 0, "accuracy": None},
        ],
        "confusion_matrix": [[1, 1, 0], [0, 2, 0], [0, 0, 0]],
    }
    text = (tmp_path / "new" / "predictions.csv").read_bytes().decode()
    assert text.splitlines()[:2] == [
        "index,label,predicted,probability,label_probability,rank",
        "2,0,0,0.75,0.75,0",
    ]
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["index"] for row in rows] == ["2", "3", "5", "8"]
    assert np.float32(rows[2]["probability"]) == np.float32(0.1)
    assert "\r" not in text
    pixels = image.imread(tmp_path / "new" / "confusion_matrix.png")
    assert min(pixels.shape[:2]) > 300
    assert len(np.unique(pixels[..., 0])) > 10


def test_history_and_events(tmp_path):
    """Scores of all steps are kept, in a line and an event each; a step again replaces its line."""
    for steps in ((1, 2), (2, 3)):
        with EvaluationWriter(tmp_path, NAMES) as writer:
            for step in steps:
                writer.write(_evaluation(step, loss=0.5 if step == 3 else None))
    lines = [json.loads(line) for line in (tmp_path / "evaluations.jsonl").read_text().splitlines()]
    assert [(line["global_step"], line["total_loss"]) for line in lines] == [
        (1, None),
        (2, None),
        (3, 0.5),
    ]
    events = [
        (event.step, value.tag, value.simple_value)
        for path in sorted(tmp_path.glob("events*"))
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    assert {step for step, _, _ in events} == {1, 2, 3}
    assert [(tag, value) for step, tag, value in events if step == 3] == [
        ("accuracy", 0.75),
        ("recall_at_5", 0.75),
        ("log_loss", pytest.approx(LOG_LOSS)),
        ("loss", 0.5),
    ]


def test_figure():
    """The cells hold the numbers, by label down and predicted class across."""
    confusion = np.array([[1, 2], [0, 3]])
    figure = confusion_figure(confusion, ["cat", "dog"], "step 7")
    axes, _ = figure.axes
    cells = {
        (text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts
    }
    assert cells == {(i, j): str(confusion[i, j]) for i in (0, 1) for j in (0, 1)}
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "step 7",
        "predicted class",
        "label",
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "dog"]
    np.testing.assert_allclose(axes.images[0].get_array(), [[1 / 3, 2 / 3], [0, 1]])
    # A thousand classes get neither numbers nor names, which nobody could read.
    figure = confusion_figure(np.eye(1000, dtype=int), [f"{i}" for i in range(1000)], "")
    assert len(figure.axes[0].texts) == 0
    assert len(figure.axes[0].get_yticks()) < 20


def test_a_folder_that_cannot_be_made(tmp_path):
    """An eval_dir that is a file is named in the error, and stays."""
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OSError, match=f"eval_dir must be a folder that can be written, got {path}"):
        EvaluationWriter(path, NAMES)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(("mode", "content"), [("w", "new"), ("wb", b"new")])
def test_replaced_file(tmp_path, mode, content):
    """A file is there as a whole, or as it was if its writing fails; nothing is left over."""
    path = tmp_path / "file"
    path.write_text("old")

    def write_and_fail():
        with replaced_file(path, mode) as file:
            file.write(content)
            file.flush()
            assert path.read_text() == "old"
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_and_fail()
    assert path.read_text() == "old"
    with replaced_file(path, mode) as file:
        file.write(content)
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_keeps_the_last_evaluation(tmp_path, monkeypatch):
    """If the disk is full while step 8 is written, `evaluation.json` is that of step 7."""
    with EvaluationWriter(tmp_path, NAMES) as writer:
        writer.write(_evaluation(7))

        def fail(*_):
            raise OSError("disk full")

        monkeypatch.setattr(Predictions, "write_csv", fail)
        with pytest.raises(OSError, match="disk full"):
            writer.write(_evaluation(8))
    assert json.loads((tmp_path / "evaluation.json").read_text())["global_step"] == 7
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_what_was_evaluated(tmp_path):
    """A folder has the evaluation of a checkpoint of its step, or before, that is not newer."""
    for step in (6, 7, 8):
        (tmp_path / f"model.ckpt-{step}.index").touch()
    checkpoints = [str(tmp_path / f"model.ckpt-{step}") for step in (6, 7, 8, 9)]
    folder = tmp_path / "eval_test"
    assert [has_evaluation(folder, path) for path in checkpoints] == [False] * 4
    with EvaluationWriter(folder, NAMES) as writer:
        writer.write(_evaluation())
    assert [has_evaluation(folder, path) for path in checkpoints] == [True, True, False, False]
    later = os.stat(folder / "evaluation.json").st_mtime + 1
    os.utime(f"{checkpoints[1]}.index", (later, later))
    assert [has_evaluation(folder, path) for path in checkpoints] == [True, False, False, False]
