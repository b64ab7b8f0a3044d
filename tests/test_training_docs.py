"""What docs/training.md shows is true: its commands run."""

import os
import re
import shlex
from pathlib import Path

import pytest

import eval_image_classifier
import export_image_classifier
import train_image_classifier
from model_deploy.checkpoints import __main__ as checkpoints
from model_deploy.runs import __main__ as runs

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "training.md").read_text()
COMMANDS = {
    module.__name__: module.main
    for module in (train_image_classifier, eval_image_classifier, export_image_classifier)
}
PROGRAMS = {"model_deploy.runs": runs.main, "model_deploy.checkpoints": checkpoints.main}


def run_line(line):
    """Runs a line of the page in this process; returns the exit code."""
    program, *arguments = shlex.split(line)
    if arguments[0] == "-m":
        PROGRAMS[arguments[1]](arguments[2:])  # which ends the test where it fails
        return 0
    if program == "train_image_classifier" and not any("--config" in each for each in arguments):
        arguments.append("--model_name=mnist_mlp")  # whose steps take a twentieth of LeNet's
    return COMMANDS[program]([program, *arguments])


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.slow
def test_commands(tmp_path, monkeypatch, capsys):
    """Every command runs, of a small network, and the first run leaves the files of the table."""
    monkeypatch.chdir(tmp_path)
    [settings] = blocks("yaml")
    Path("mine.yaml").write_text(settings)
    for block in blocks("bash"):
        for line in block.splitlines():
            assert run_line(line) == 0, capsys.readouterr().err
    shown = capsys.readouterr()
    assert "test accuracy at step 450: " in shown.out
    assert "accuracy 0.9 is reached: the run ends" in shown.err
    assert re.search(r"^differs +1 +2$", shown.out, re.MULTILINE)
    assert re.search(r"^learning_rate +0.01 +0.02$", shown.out, re.MULTILINE)
    assert Path("runs.svg").exists()
    table = re.findall(r"^\| (`.+?`(?:, `.+?`)?) \|", DOCUMENT, re.MULTILINE)
    names = [name for row in table for name in re.findall(r"`([^`]+)`", row) if name[0] != "-"]
    assert len(names) == 10
    for name in names:
        assert list(Path("digits_run").glob(name.replace("<step>", "450").rstrip("/"))), name
    assert os.path.exists("cifarnet_model")
