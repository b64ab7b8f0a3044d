"""`python -m model_deploy.runs folder...`: lists runs, and draws their curves in one picture."""

import argparse
from collections.abc import Sequence

from model_deploy.runs.comparing import runs_table
from model_deploy.runs.drawing import draw_runs
from model_deploy.runs.reading import find_runs


def main(arguments: Sequence[str] | None = None) -> None:
    """Lists, and draws, the runs that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.runs",
        description="Lists runs with step, loss, accuracy (of the last evaluation and the best), "
        "rate, effective time (share of the wall time in steps that count), and the options in "
        "which they differ.",
    )
    parser.add_argument("folders", nargs="+", help="a train_dir, or a folder with some in it")
    parser.add_argument(
        "--picture", help="file to draw them into, such as runs.svg or runs.png (default: none)"
    )
    options = parser.parse_args(arguments)
    try:
        runs = find_runs(options.folders)
        print(runs_table(runs))
        if options.picture:
            draw_runs(runs, options.picture)
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
