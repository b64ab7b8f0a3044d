"""`import model_deploy` offers all names at once, and imports TensorFlow when one is used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import model_deploy
from tests.processes.harness import ROOT


def _python(program):
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("import model_deploy", id="package"),
        pytest.param("import model_deploy.launch.__main__", id="launcher"),
    ],
)
def test_without_tensorflow(statement):
    """Neither the package nor the launcher imports TensorFlow."""
    assert _python(f"{statement}\nimport sys\nprint('tensorflow' in sys.modules)") == "False\n"


def test_names():
    """Every public name is there, in `dir`, and the very object of its module."""
    assert set(model_deploy.__all__) <= set(dir(model_deploy))
    for name in model_deploy.__all__:
        assert getattr(model_deploy, name) is not None
    assert model_deploy.deploy is importlib.import_module("model_deploy.deployment").deploy


def test_tables_agree():
    """Names that type checkers see come from the modules that the table names."""
    tree = ast.parse(Path(model_deploy.__file__).read_text())
    seen = {
        alias.name: node.module.removeprefix("model_deploy.")
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        for alias in node.names
    }
    assert seen == model_deploy._MODULES
    assert {*seen, "slim"} == set(model_deploy.__all__)


def test_modules_are_attributes():
    """`model_deploy.training` and the like need no import of their own."""
    program = (
        "import model_deploy\nprint(model_deploy.inputs.__name__, model_deploy.config.__name__)"
    )
    assert _python(program) == "model_deploy.inputs model_deploy.config\n"


def test_unknown_name():
    """A name that is not there is an error that says so."""
    with pytest.raises(AttributeError, match="'model_deploy' has no attribute 'deplyo'"):
        model_deploy.deplyo  # noqa: B018 - reading it is the test
