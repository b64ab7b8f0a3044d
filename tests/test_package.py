"""The package: its modules are there when they are asked for, without TensorFlow before that."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_mode

ROOT = Path(__file__).parents[1]


def test_modules_are_attributes():
    """`model_deploy.inputs` and the like need no import of their own."""
    program = "import model_deploy; print(model_deploy.inputs.__name__)"
    assert _run("-c", program) == "model_deploy.inputs\n"


def test_starts_without_tensorflow(tmp_path):
    """Importing the package works where TensorFlow cannot be imported."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('tensorflow was imported')")
    _run("-c", "import model_deploy", path=[str(tmp_path)])


def test_programs_of_the_tests_can_be_imported():
    """Long measurements are programs that no test runs: they find what they import, at least."""
    files = [path for path in ROOT.glob("tests/**/*.py") if path.stem != "conftest"]
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    texts = (path.read_text() for path in files)
    programs = [name for name, text in zip(modules, texts, strict=True) if f"-m {name}" in text]
    assert len(programs) > 9
    for name in programs:
        importlib.import_module(name)


def _run(*arguments, path=()):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout
