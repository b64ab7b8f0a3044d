r"""`python -m model_deploy.inputs.convert`: writes a dataset as TFRecords in the format of TF-Slim.

    python -m model_deploy.inputs.convert --dataset_name=folder \
        --data_dir=photos --output_dir=records

`--max_side=256` writes smaller JPEGs, `--raw --image_size=256` pixels that need no decoding.

A conversion that is killed leaves no incomplete file that looks complete.  The same command then
writes the missing shards.
"""

import argparse
import re
from collections.abc import Sequence

from model_deploy import inputs
from model_deploy.commands import named_as


def main(arguments: Sequence[str] | None = None) -> None:
    """Converts the dataset that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m model_deploy.inputs.convert", description="Writes a dataset as TFRecords."
    )
    parser.add_argument("--dataset_name", help="name of a dataset", type=_name)
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
    parser.add_argument(
        "--max_side",
        type=int,
        help="pixels: images whose longer side has more are reduced to that, by area, and "
        "written as JPEG; the others keep their bytes (default: all keep them)",
    )
    parser.add_argument(
        "--quality", type=int, help="of the JPEGs that --max_side writes, 1 to 100 (default: 95)"
    )
    parser.add_argument(
        "--raw",
        action="store_true",
        help="write images of one size as their bytes, which are not decoded when they are read; "
        "the centre with the proportions of --image_size is scaled to it, by area",
    )
    parser.add_argument(
        "--image_size",
        type=_size,
        help="side of --raw images, or height,width; needed where the images vary in size",
    )
    options = parser.parse_args(arguments)
    if not (options.dataset_name or options.uncompress):
        parser.error("the following arguments are required: --dataset_name")
    # After help and refusals, as TensorFlow takes seconds.
    from model_deploy.inputs.datasets.conversion import convert, uncompress  # noqa: PLC0415

    try:
        if options.uncompress:
            _check_alone(options)
            for split in options.splits:
                uncompress(options.data_dir, split, options.output_dir)
            return
        for split in options.splits:
            with named_as(split="splits"):
                dataset = inputs.get_dataset(options.dataset_name, split, options.data_dir)
            convert(
                dataset,
                options.output_dir,
                name=options.output_name or re.sub(r"[/:]", "_", options.dataset_name),
                num_shards=options.num_shards,
                max_side=options.max_side,
                quality=options.quality,
                raw=options.raw,
                image_size=options.image_size,
            )
    except (ValueError, OSError) as error:
        parser.error(str(error))


def _name(text: str) -> str:
    """Returns the name of a dataset, for argparse."""
    try:
        inputs.check_dataset_name("dataset_name", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _size(text: str) -> int | tuple[int, int]:
    sides = [int(side) for side in text.split(",") if side.isdecimal()]
    if len(sides) != text.count(",") + 1 or len(sides) > 2:
        raise argparse.ArgumentTypeError(f"must be a side or height,width, got {text!r}")
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def _check_alone(options: argparse.Namespace) -> None:
    """Checks that no option about images is given with `uncompress`, which ignores images."""
    for name in ("max_side", "quality", "raw", "image_size"):
        value = getattr(options, name)
        if value not in (None, False):
            raise ValueError(f"{name} must not come with uncompress, got {value}")


if __name__ == "__main__":
    main()
