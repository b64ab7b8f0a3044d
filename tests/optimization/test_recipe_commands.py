"""The flags of optimizers and schedules, and the commands of docs/optimizers.md."""

import re
import shlex
from pathlib import Path

import pytest

import train_image_classifier
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY

pytestmark = pytest.mark.one_mode

DOCUMENT = (Path(__file__).parents[2] / "docs" / "optimizers.md").read_text()
_COMMANDS = "".join(re.findall(r"```bash\n(.*?)```", DOCUMENT, re.DOTALL))
COMMANDS = {shlex.split(line)[1].split("=")[1]: line for line in _COMMANDS.splitlines()}


@pytest.mark.slow
@pytest.mark.parametrize("run", COMMANDS)
def test_commands(run, tmp_path, monkeypatch, capsys):
    """Each command runs, learns something in a quarter of its steps, and prints the lines that the
    page shows of it.
    """
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(COMMANDS[run])
    assert program == "train_image_classifier"
    code = train_image_classifier.main([program, *arguments, "--max_number_of_steps=11"])
    out, err = capsys.readouterr()
    assert code == 0, err
    [shown] = re.findall(r"```text\n(nesterov.*?)```", DOCUMENT, re.DOTALL)
    name = run.replace("steps", "nesterov").removesuffix("_run")
    assert all(line in out for line in shown.splitlines() if line.startswith(f"{name} decays"))
    assert all(line in out for line in shown.splitlines() if line.endswith(run))
    accuracy = float(re.search(r"test accuracy at step 11: (\S+)", out)[1])
    assert accuracy > 0.2, out  # of 360 digits, by chance 0.1 with a deviation of 0.016


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--no_weight_decay=(", r"no_weight_decay must be a regular expression, got '\('"),
        ("--optimizer_weight_decay=-1", "optimizer_weight_decay must be at least 0, got -1.0"),
        ("--learning_rate_boundaries=3", "learning_rate_factors must be as many as"),
        ("--learning_rate_scaling=log", "must be one of none, linear, sqrt, got 'log'"),
    ],
)
def test_bad_flags(flag, message, capsys):
    """A bad flag ends the command with one line that names it."""
    assert train_image_classifier.main(["train_image_classifier", flag]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_help_and_page(capsys):
    """Settings of optimizers and of schedules stand under their topics, each with its help. What
    the page shows of names that are not decayed is the default.
    """
    assert f"not those with {NO_WEIGHT_DECAY!r} in their names" in DOCUMENT
    assert train_image_classifier.main(["train_image_classifier", "--helpfull"]) == 0
    out = capsys.readouterr().out
    topics = dict(re.findall(r"^([a-z ]+):\n(.*?)(?=^\S|\Z)", out, re.MULTILINE | re.DOTALL))
    for flag in ("optimizer_weight_decay", "no_weight_decay", "lars_coefficient", "adamw_epsilon"):
        assert f"\n  --{flag}=" in topics["optimizer"]
    for flag in ("learning_rate_scaling", "schedule_epochs", "warmup_learning_rate"):
        assert f"\n  --{flag}=" in topics["learning rate"]
