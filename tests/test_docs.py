"""What the documentation shows is true: examples run, tables name what exists."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import tensorflow.compat.v1 as tf

import model_deploy
import nets

ROOT = Path(__file__).parents[1]
MODULES = [
    module.name
    for package in (model_deploy, nets)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]


@pytest.mark.one_mode
@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    """Examples in docstrings give what they say."""
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples():
    """The public entry points have examples."""
    finder = doctest.DocTestFinder()
    names = ("slim", "config", "gradients", "inputs.batches", "placement")
    for name in names:
        module = importlib.import_module(f"model_deploy.{name}")
        assert any(test.examples for test in finder.find(module)), name


def _blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.slow
def test_readme_example_trains(tmp_path, monkeypatch):
    """The example of the README trains to its last step, with or without four GPUs."""
    monkeypatch.chdir(tmp_path)
    [program] = _blocks("python")
    exec(compile(program, "README.md", "exec"), {})
    assert (tmp_path / "four_gpus" / "model.ckpt-300.index").exists()
    [path] = (tmp_path / "four_gpus").glob("events*")
    losses = [
        value.simple_value
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "total_loss_1"
    ]
    assert 0 < losses[-1] < 0.5  # from log(10) = 2.3


def test_readme_commands_are_those_of_the_gate():
    """The gate installs and tests with the README's commands."""
    gate = (ROOT / ".ci" / "run").read_text()
    main, test = (block.strip() for block in _blocks("bash"))
    assert main == "pip install .\ntrain_image_classifier --train_dir=digits_run"
    for command in test.split(" && "):
        assert f"\n{command}\n" in gate.replace(" --quiet", "")
