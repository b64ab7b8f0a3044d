"""`python -m model_deploy.inputs.download`: downloads an official dataset.

python -m model_deploy.inputs.download cifar10 --data_dir=data
"""

import argparse
from collections.abc import Sequence

from model_deploy.inputs.files.downloading import DOWNLOADS, download_dataset


def main(arguments: Sequence[str] | None = None) -> None:
    """Downloads the dataset that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.inputs.download", description="Downloads a dataset."
    )
    parser.add_argument("dataset", choices=sorted(DOWNLOADS))
    parser.add_argument("--data_dir", required=True, help="the folder to put it into")
    parser.add_argument("--sha256", help="the sum of the file, where it is not known")
    parser.add_argument("--base_url", help="a mirror: the folder of the files there")
    options = parser.parse_args(arguments)
    try:
        download_dataset(
            options.dataset, options.data_dir, sha256=options.sha256, base_url=options.base_url
        )
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
