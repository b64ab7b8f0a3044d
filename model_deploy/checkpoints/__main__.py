"""`python -m model_deploy.checkpoints run_dir`: lists checkpoints, reads each, changes nothing."""

import argparse
import sys
from collections.abc import Sequence

from model_deploy import file_systems
from model_deploy.commands import without_tensorflow_notices


def main(arguments: Sequence[str] | None = None) -> None:
    """Lists the checkpoints of the folders that the command line names.

    Raises:
      SystemExit: with 1, if one, or the file that lists them, is damaged; with 2 for a folder
        without checkpoints.
    """
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.checkpoints",
        description="Lists the checkpoints of runs: step, size, what they hold, when they were "
        "made, and whether they are good; all of each is read, and nothing is changed.  The exit "
        "status is 1 if one is damaged.",
    )
    parser.add_argument("folders", nargs="+", metavar="folder", help="folder of a run")
    all_good = True
    folders = parser.parse_args(arguments).folders
    with without_tensorflow_notices():  # after help and refusals, as TensorFlow takes seconds
        from model_deploy.checkpoints.good import listing_of  # noqa: PLC0415
        from model_deploy.checkpoints.listing import checkpoints_found, listing  # noqa: PLC0415
    for folder in folders:
        if not file_systems.is_folder(folder):
            parser.error(f"folder must be that of a run, got {folder}")
        try:
            found = checkpoints_found(folder)
        except OSError as error:
            parser.error(str(error))
        if not found:
            parser.error(f"folder must have checkpoints, got none in {folder}")
        print(listing(folder, found))
        all_good &= all(each.is_good for each in found) and not listing_of(folder).wrong
    if not all_good:
        sys.exit(1)


if __name__ == "__main__":
    main()
