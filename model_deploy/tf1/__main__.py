"""Runs a program of TensorFlow 1 as it is.

    python -m model_deploy.tf1 old_program.py --its_flags
    python -m model_deploy.tf1 --path=slim -m package.module --its_flags

For the modules of the program's folder, and of those that `--path` adds, `import tensorflow` gives
TensorFlow 1's names, `tf.contrib` included as far as it exists; Python, NumPy and SciPy have what
they have dropped since; `deployment`, `datasets`, `preprocessing` and `nets` of TF-Slim are there
where the folder has none of its own.
"""

import argparse
import sys
from collections.abc import Sequence

from model_deploy.commands import without_tensorflow_notices


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status, 2 for a mistake in it."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.tf1",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--path", action="append", default=[], help="another folder of the program; several times"
    )
    parser.add_argument(
        "--resource_variables", action="store_true", help="in place of reference variables"
    )
    parser.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program", help="file or, after -m, module")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program gets")
    options = parser.parse_args(list(arguments))
    with without_tensorflow_notices():  # after help and refusals, as it takes seconds
        from model_deploy.tf1.running import Program, ProgramError, run  # noqa: PLC0415
    program = Program(
        options.program,
        options.is_module,
        options.arguments,
        options.path,
        options.resource_variables,
    )
    try:
        run(program, lambda line: print(line, file=sys.stderr, flush=True))
    except ProgramError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
