"""What runs have left in their folders, side by side."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from model_deploy.runs import Run, differing_options, draw_runs, find_runs, read_metrics, runs_table
from model_deploy.runs import __main__ as command

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[2]
TRAINING = (ROOT / "docs" / "training.md").read_text()


def _write_run(folder, options, lines):
    folder.mkdir(parents=True)
    (folder / "options.yaml").write_text(json.dumps(options))  # which is YAML
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def runs(tmp_path):
    """A folder with two runs that differ in their rate, one of them in a folder of its own."""
    first = [
        {"step": 10, "loss": 2.0, "images_per_sec": 100.0, "time": "2026-01-01T00:00:00+00:00"},
        {"step": 10, "accuracy": 0.75},
        {"step": 20, "loss": 1.0, "images_per_sec": 300.0, "effective": 0.875},
        {"step": 20, "accuracy": 0.5},
        {"step": 30, "loss": None, "images_per_sec": 1200.0},
    ]
    same = {"seed": 0, "xla": False, "dataset_dir": None}
    _write_run(tmp_path / "all" / "a", {"train_dir": "a", "rate": 0.1, **same}, first)
    second = [{"step": 5, "loss": 3.0, "images_per_sec": 50.0}]
    _write_run(tmp_path / "all" / "more" / "b", {"train_dir": "b", "rate": 1e-4, **same}, second)
    return tmp_path / "all"


def test_a_run_is_summed_up(runs):
    """Loss and accuracy are the last that are numbers, the rate is the median. Folders may be named
    twice, or be in each other.
    """
    first, second = find_runs([runs / "a", runs, str(runs) + "/./a"])
    assert [first.folder, second.folder] == [str(runs / "a"), str(runs / "more" / "b")]
    assert (first.step, first.loss, first.accuracy, first.best_accuracy) == (30, 1.0, 0.5, 0.75)
    assert first.images_per_sec == 300.0  # of 100, 300 and 1200
    assert (second.step, second.loss, second.accuracy, second.best_accuracy) == (5, 3.0, None, None)


def test_a_run_without_one_of_the_files(tmp_path):
    """A run that has just begun has no metrics yet; one of another program has no options."""
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "options.yaml").write_text("seed: 1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n')
    begun, other = find_runs([tmp_path])
    assert (begun.step, begun.loss, begun.images_per_sec) == (None, None, None)
    assert (other.step, dict(other.options)) == (1, {})
    assert differing_options([begun, other]) == {}


def test_what_is_no_run(tmp_path):
    """A folder that has no run in it is refused, as it may be a slip of the pen; a file of options
    that is none is an error that names it.
    """
    with pytest.raises(ValueError, match=r"folder must be that of a run, .*, got .*/none"):
        find_runs([tmp_path / "none"])
    (tmp_path / "options.yaml").write_text("- a\n- b\n")
    with pytest.raises(ValueError, match=r"options.yaml must be a mapping of options, got list"):
        find_runs([tmp_path])


def test_lines_of_killed_runs(tmp_path):
    """What is no object with a step, such as half of a line, is none of the metrics. Some steps are
    made again: what was noted last counts, in order of steps. Who names numbers gets them alone.
    """
    lines = [{"step": step, "loss": loss} for step, loss in ((2, 9.0), (4, 8.0), (2, 5.0))]
    assert Run("folder", {}, lines).points("loss") == [(2, 5.0), (4, 8.0)]
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"lo\n[1]\n{"a": 1}\n{"st')
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 2.0}]
    assert read_metrics(tmp_path, ["accuracy"]) == [{"step": 1}]
    assert read_metrics(tmp_path / "none") == []


def test_what_differs():
    """Settings differ by value; those of the folder do not count, and None stands for unknown.
    Where runs have the same settings the table says so; a single run has none to compare.
    """
    runs = [
        Run("a", {"train_dir": "a", "same": 1, "rate": 0.1}),
        Run("b", {"train_dir": "b", "same": 1, "rate": 0.2, "new": True}),
    ]
    assert differing_options(runs) == {"rate": [0.1, 0.2], "new": [None, True]}
    assert differing_options(runs[:1]) == {}
    same = [Run("a", {"seed": 1}), Run("b", {"seed": 1})]
    assert runs_table(same).endswith("\n\nno options differ")
    assert len(runs_table(same[:1]).splitlines()) == 2


def test_table(runs, monkeypatch):
    """The table has a line per run and, below it, one per option that differs."""
    monkeypatch.chdir(runs)
    first, second, _, header, rate = runs_table(find_runs(["a", "more"])).splitlines()[1:]
    assert first.split() == ["1", "a", "30", "1.0000", "0.5000", "0.7500", "300", "87.5%"]
    assert second.split() == ["2", "more/b", "5", "3.0000", "-", "-", "50", "-"]
    assert header.split() == ["differs", "1", "2"]
    assert rate.split() == ["rate", "0.1", "0.0001"]


def test_picture(runs, tmp_path):
    """The picture is an SVG with a curve per run and panel, the same for the same runs."""
    path = draw_runs(find_runs([runs]), tmp_path / "runs.svg")
    picture = Path(path).read_text()
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    # Titles of axes and names of runs are glyphs with a comment that has the text.
    texts = re.findall(r"<!-- (.*?) -->", picture)
    for text in ("total loss", "evaluation accuracy", "images/s"):
        assert text in texts
    assert {str(runs / "a"), str(runs / "more" / "b")} <= set(texts)
    draw_runs(find_runs([runs]), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == picture


@pytest.mark.parametrize(
    ("metrics", "name", "message"),
    [
        pytest.param([{"step": 1, "loss": 1.0}], "a.xyz", r"end in one of .*\.svg", id="format"),
        pytest.param([], "a.svg", r"runs must have numbers to draw, got none in 1", id="nothing"),
    ],
)
def test_picture_rejects(tmp_path, metrics, name, message):
    """What cannot be drawn is refused, and leaves no file."""
    with pytest.raises(ValueError, match=message):
        draw_runs([Run("a", {}, metrics)], tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_command(runs, tmp_path, capsys):
    """The command prints the table and draws the picture."""
    command.main([str(runs), f"--picture={tmp_path / 'runs.png'}"])
    assert capsys.readouterr().out == runs_table(find_runs([runs])) + "\n"
    assert (tmp_path / "runs.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        command.main([str(tmp_path / "none")])
    assert "folder must be that of a run" in capsys.readouterr().err


def test_command_starts_without_tensorflow(runs, tmp_path):
    """Listing and drawing runs of this machine works where TensorFlow cannot be imported."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('tensorflow was imported')")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    arguments = ["-m", "model_deploy.runs", str(runs), f"--picture={tmp_path / 'a.svg'}"]
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=env)
    assert (tmp_path / "a.svg").exists()


def test_pandas_reads_metrics(runs):
    """The lines for pandas in docs/training.md give a column per number, also of broken files."""
    pandas = pytest.importorskip("pandas", exc_type=ImportError)
    lines = re.findall(r"`(pd\.[^`]+)`", TRAINING)
    assert len(lines) == 2
    path = runs / "a" / "metrics.jsonl"
    for number, line in enumerate(lines):
        if number == 1:  # the one for runs that were killed
            path.write_text(path.read_text() + '{"step": 40, "lo')
        names = {"pd": pandas, "read_metrics": read_metrics}
        frame = eval(line.replace("digits_run", str(runs / "a")), names)
        assert list(frame["step"]) == [10, 10, 20, 20, 30]
        assert list(frame["loss"].dropna()) == [2.0, 1.0]
        assert list(frame["accuracy"].dropna()) == [0.75, 0.5]
