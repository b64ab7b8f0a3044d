"""The programs and commands in docs/inputs.md run."""

import pathlib
import re
import shlex

import pytest

import train_image_classifier
from model_deploy.inputs import convert
from model_deploy.inputs.datasets import dataset
from tests.inputs import files

pytestmark = pytest.mark.one_mode

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "inputs.md").read_text()


def blocks(language):
    """The blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_programs_run(number, tmp_path, monkeypatch, capsys):
    """Each Python program runs to its end and prints its result."""
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python")[number], "docs/inputs.md", "exec"), {})
    seen = [[*range(n % 4)] for n in range(8)]
    results = (str(seen), "(32,)", "1", "(10, 16, 16, 3)", "(8,)", "['bad', 'good'] 5 (8, 2) (2,)")
    assert capsys.readouterr().out.strip() in results


def run(command):
    """Runs a `python -m` command of the document in this process; returns its exit code."""
    python, option, module, *arguments = shlex.split(command)
    assert (python, option) == ("python", "-m")
    if module == convert.__name__:
        return convert.main(arguments) or 0
    assert module == train_image_classifier.__name__
    return train_image_classifier.main([module, *arguments])


@pytest.mark.slow
def test_commands_run(tmp_path, monkeypatch):
    """The commands train on a folder of images, convert it, and train on the records."""
    monkeypatch.chdir(tmp_path)
    files.write_folder(tmp_path / "photos", count=20, shape=(30, 32, 3))
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        assert run(line) == 0
    assert (tmp_path / "run" / "checkpoint").exists()
    assert len(list((tmp_path / "records").glob("*.tfrecord"))) == 4


def test_all_datasets_are_listed():
    """The table of datasets has those that are registered, and no others."""
    table = DOCUMENT.split("## Datasets")[1].split("The pickled")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)}
    built_in = {
        name
        for name, builder in dataset._BUILDERS.items()
        if builder.__module__.startswith("model_deploy.inputs.")
    }
    assert names == built_in - {"black_and_white"}  # from an example in a docstring
