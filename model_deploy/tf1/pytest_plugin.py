"""Runs the tests of an old program: `pytest -p model_deploy.tf1.pytest_plugin FOLDER`."""

from typing import Any

from absl import flags

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    from model_deploy.tf1.importing import OldProgram
    from model_deploy.tf1.running import as_in_tensorflow_1

_PROGRAM = "model_deploy_tf1_program"


def pytest_addoption(parser: Any) -> None:
    """`--tf1_path`: more folders of the program."""
    group = parser.getgroup("model_deploy.tf1")
    group.addoption("--tf1_path", action="append", default=[], help="another folder of the program")
    group.addoption("--resource_variables", action="store_true", help="not reference variables")


def pytest_configure(config: Any) -> None:
    """From now on the modules of the program import as those of TensorFlow 1."""
    as_in_tensorflow_1(config.getoption("resource_variables"))
    program = OldProgram([str(config.rootpath), *config.getoption("tf1_path")])
    setattr(config, _PROGRAM, program.__enter__())
    # The command line is pytest's, not the program's: its flags have their defaults.
    flags.FLAGS([config.rootpath.name])


def pytest_unconfigure(config: Any) -> None:
    """Ends it."""
    getattr(config, _PROGRAM).__exit__()


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Says once what the program got from here."""
    supplied = getattr(config, _PROGRAM).supplied
    terminalreporter.write_line(f"model_deploy.tf1 supplied {', '.join(supplied) or 'nothing'}")
