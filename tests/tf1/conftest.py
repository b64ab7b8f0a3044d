"""What a program of TensorFlow 1 brings into a process is gone after its test."""

import os
import sys

import pytest

from tests.processes.harness import ROOT, Processes

TF1 = [sys.executable, "-m", "model_deploy.tf1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for a program; its modules and the search path are as before afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if os.path.realpath(file).startswith(os.path.realpath(tmp_path) + os.sep):
            del sys.modules[name]
    sys.path_importer_cache.clear()


@pytest.fixture
def write(folder):
    """Writes files of a program: their names, with `/`, and what is in them."""

    def write_files(files):
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return folder

    return write_files


@pytest.fixture
def run_python(tmp_path_factory):
    """Runs a command line of Python to its end, forked; returns status and what it printed."""

    def run(*arguments, cwd=ROOT):
        command = [sys.executable, *map(str, arguments)]
        log_dir = tmp_path_factory.mktemp("logs")
        with Processes(log_dir, CUDA_VISIBLE_DEVICES="-1") as processes:
            process = processes.start("program", command, cwd=cwd)
            return process.wait(600.0), process.log

    return run
