"""The package's names: there when they are asked for, without TensorFlow before that."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import model_deploy

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]


def _imports_for_type_checkers():
    """Module of each name that `model_deploy/__init__.py` imports from its own modules."""
    tree = ast.parse((ROOT / "model_deploy" / "__init__.py").read_text())
    return {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("model_deploy.")
        for alias in node.names
    }


def test_names_are_those_of_the_imports():
    """What a program gets is what type checkers and the documentation see, name by name."""
    imports = _imports_for_type_checkers()
    assert sorted([*imports, "slim"]) == model_deploy.__all__
    for name, module in imports.items():
        assert getattr(model_deploy, name) is getattr(importlib.import_module(module), name)


def test_programs_of_the_tests_can_be_imported():
    """Long measurements are programs that no test runs: they find what they import, at least."""
    files = [path for path in ROOT.glob("tests/**/*.py") if path.stem != "conftest"]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    texts = (path.read_text() for path in files)
    programs = [name for name, text in zip(modules, texts, strict=True) if f"-m {name}" in text]
    assert len(programs) > 9
    for name in programs:
        importlib.import_module(name)


def test_dir_has_all_names():
    """Names are listed before they were used."""
    program = "import model_deploy; print(set(model_deploy.__all__) <= set(dir(model_deploy)))"
    assert _run("-c", program) == "True\n"


@pytest.mark.slow
def test_modules_are_attributes():
    """`model_deploy.inputs` and the like need no import of their own."""
    program = "import model_deploy; print(model_deploy.inputs.__name__)"
    assert _run("-c", program) == "model_deploy.inputs\n"


def test_no_name_is_that_of_a_module():
    """Importing a module of the package takes no name from it."""
    modules = {module.name for module in pkgutil.iter_modules(model_deploy.__path__)}
    assert modules & set(model_deploy.__all__) == {"slim"}  # which is a module


def test_an_unknown_name_is_an_attribute_error():
    """A name that the package has not is an error, as in any module."""
    with pytest.raises(AttributeError, match="'model_deploy' has no attribute 'no_such_name'"):
        model_deploy.no_such_name  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("-c", "import model_deploy"), id="package"),
        pytest.param(("-m", "model_deploy.launch", "--", "true"), id="launch"),
        pytest.param(("-m", "model_deploy.launch", "--help"), id="help"),
    ],
)
def test_starts_without_tensorflow(arguments, tmp_path):
    """Importing the package and launching a cluster work where TensorFlow cannot be imported."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('tensorflow was imported')")
    _run(*arguments, path=[str(tmp_path)])


def _run(*arguments, path=()):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
