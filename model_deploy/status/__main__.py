r"""`python -m model_deploy.status`: what the tasks of a run are doing.

    python -m model_deploy.status run_dir

prints for each task its step, steps per second, the parts of its time, its memory, and when the
chief has last heard from it.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from model_deploy.status.file import read_status
from model_deploy.status.table import status_report


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table, once or again and again."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.status",
        description="Prints what each task of a run is doing, from a file in the run's folder.",
    )
    parser.add_argument("run_dir", help="folder of a run: its train_dir")
    parser.add_argument(
        "--watch", type=float, help="seconds between two looks, until Ctrl-C (default: one look)"
    )
    options = parser.parse_args(arguments)
    if options.watch is not None and not options.watch > 0:
        parser.error(f"watch must be more than 0, got {options.watch:g}")
    try:
        while True:
            print(status_report(read_status(options.run_dir), time.time()), flush=True)
            if options.watch is None:
                return
            time.sleep(options.watch)
            print()
    except (ValueError, OSError) as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
