r"""`python -m model_deploy.inputs.index`: makes the indexes of TFRecord files in advance.

    python -m model_deploy.inputs.index --data_dir=records --splits train validation

Reading a dataset makes missing indexes; made in advance they exist when many machines start at
once.
"""

import argparse
from collections.abc import Sequence

from model_deploy.inputs.datasets import dataset
from model_deploy.inputs.files.corrupt_records import Tolerance


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes the indexes that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.inputs.index",
        description="Makes the indexes of TFRecord files.",
    )
    parser.add_argument("--data_dir", required=True, help="the folder with the files")
    parser.add_argument("--splits", nargs="+", default=["train"])
    options = parser.parse_args(arguments)
    # After help and refusals, as TensorFlow takes seconds.
    from model_deploy.inputs.files import slim_files, tfrecords  # noqa: PLC0415

    try:
        folder = dataset.required_folder("tfrecord", options.data_dir)
        for split in options.splits:
            paths = slim_files.find_shards(folder, "*", split)
            files = tfrecords.index_files(paths, Tolerance(), keep=True)
            records = sum(len(file.offsets) for file in files)
            print(f"{split}: {len(paths)} files, {records:,} records")
    except (ValueError, OSError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
