r"""`python -m model_deploy.inputs.convert`: writes a dataset as TFRecords in the format of TF-Slim.

    python -m model_deploy.inputs.convert --dataset_name=folder \
        --data_dir=photos --output_dir=records

A conversion that was killed leaves no file that reads as complete.  The same command
goes on with the shards that are missing.
"""

import argparse
from collections.abc import Sequence

from model_deploy import inputs
from model_deploy.commands import named_as
from model_deploy.inputs.conversion import convert, uncompress


def main(arguments: Sequence[str] | None = None) -> None:
    """Converts what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.inputs.convert", description="Writes a dataset as TFRecords."
    )
    parser.add_argument("--dataset_name", choices=inputs.dataset_names())
    parser.add_argument("--data_dir", help="the folder of the dataset")
    parser.add_argument("--output_dir", required=True, help="the folder for the TFRecords")
    parser.add_argument("--output_name", help="start of the file names (default: dataset_name)")
    parser.add_argument("--splits", nargs="+", default=["train", "test"])
    parser.add_argument("--num_shards", type=int, default=1)
    parser.add_argument(
        "--uncompress",
        action="store_true",
        help="write compressed TFRecords of data_dir as ones that can be read in any order",
    )
    options = parser.parse_args(arguments)
    if not (options.dataset_name or options.uncompress):
        parser.error("the following arguments are required: --dataset_name")
    try:
        if options.uncompress:
            for split in options.splits:
                uncompress(options.data_dir, split, options.output_dir)
            return
        for split in options.splits:
            with named_as(split="splits"):
                dataset = inputs.get_dataset(options.dataset_name, split, options.data_dir)
            convert(
                dataset,
                options.output_dir,
                name=options.output_name,
                num_shards=options.num_shards,
            )
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
