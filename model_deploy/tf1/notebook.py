"""Cells of a notebook as a program of TensorFlow 1: `%load_ext model_deploy.tf1`."""

import os
import sys
from types import TracebackType
from typing import Any

from model_deploy.tf1.importing import OldProgram
from model_deploy.tf1.old_module import GoneError
from model_deploy.tf1.running import as_in_tensorflow_1


def load(shell: Any) -> None:
    """Lets the cells that follow import what programs of TensorFlow 1 do.

    Args:
      shell: IPython's `InteractiveShell`, whose cells are the program; its folder is the current
        one.
    """
    as_in_tensorflow_1()
    program = OldProgram([os.getcwd()])
    program.__enter__()  # until the notebook ends
    program.prepare(shell.user_module)
    shell.set_custom_exc((GoneError,), _in_one_line)
    shell.register_magic_function(_tensorflow_version, "line", "tensorflow_version")


def _tensorflow_version(line: str) -> None:
    """`%tensorflow_version 1.x` chose a release in Colab; here it changes nothing."""
    print(
        f"%tensorflow_version {line.strip()} changes nothing: "
        "model_deploy.tf1 runs the cells as a program of TensorFlow 1"
    )


def _in_one_line(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType,
    tb_offset: int | None = None,
) -> list[str]:
    """Shows why a name is gone, without a traceback."""
    line = f"error: {error}"
    print(line, file=sys.stderr)
    return [line]
