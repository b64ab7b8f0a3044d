"""The settings of conversions that make images smaller: what is refused."""

import re

import pytest

from model_deploy import inputs
from model_deploy.inputs import convert, preparation
from tests.inputs import files

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_side": 0}, "max_side must be at least 1, got 0"),
        ({"max_side": 2.5}, "max_side must be an integer, got 2.5"),
        ({"quality": 90}, "quality must come with max_side, got 90"),
        ({"max_side": 8, "quality": 0}, "quality must be at least 1, got 0"),
        ({"max_side": 8, "quality": 101}, "quality must be at most 100, got 101"),
        ({"max_side": 8, "raw": True}, "max_side must not come with raw, .* got 8"),
        ({"image_size": 8}, "image_size must come with raw, got 8"),
        ({"image_size": 0, "raw": True}, "image_size must be at least 1, got 0"),
        ({"image_size": (8, -1), "raw": True}, "image_size must be at least 1, got -1"),
        (
            {"image_size": (8, 8, 3), "raw": True},
            r"image_size must be a side or \(height, width\), got \(8, 8, 3\)",
        ),
    ],
)
def test_preparation_rejects(options, message):
    """A setting out of its range, or without its other, is named."""
    with pytest.raises(ValueError, match=message):
        preparation.Preparation(**options)


def test_raw_needs_a_size_where_images_vary(tmp_path):
    """Before anything is written, a conversion to raw images without a size is refused."""
    files.write_folder(tmp_path / "in", count=1)
    dataset = inputs.get_dataset("folder", "train", tmp_path / "in", test_percent=0)
    with pytest.raises(ValueError, match=r"image_size must be given for raw images of .*'folder'"):
        inputs.convert_dataset(dataset, tmp_path / "out", raw=True)
    assert not (tmp_path / "out").exists()


_MAX_SIDE, _RAW = {"max_side": 4}, {"raw": True, "image_size": 4}


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, _MAX_SIDE, "got max_side None instead of 4"),
        (_MAX_SIDE, {}, "got max_side 4 instead of None"),
        (_MAX_SIDE, {"max_side": 5}, "got max_side 4 instead of 5"),
        (_MAX_SIDE, _MAX_SIDE | {"quality": 90}, "got quality 95 instead of 90"),
        (_MAX_SIDE, _RAW, "instead of"),
        (_RAW, _RAW | {"image_size": 5}, r"got image_size \[4, 4\] instead of \[5, 5\]"),
    ],
)
def test_other_settings_are_refused(first, second, message, tmp_path):
    """Shards that were prepared otherwise are not mixed with new ones."""
    dataset = inputs.get_dataset("synthetic", "train", num_examples=4, image_size=6)
    inputs.convert_dataset(dataset, tmp_path, progress=False, **first)
    with pytest.raises(ValueError, match=message):
        inputs.convert_dataset(dataset, tmp_path, progress=False, **second)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quality=90"], "quality must come with max_side, got 90"),
        (["--max_side=0"], "max_side must be at least 1, got 0"),
        (["--image_size=8"], "image_size must come with raw, got 8"),
        (
            ["--raw", "--image_size=1,2,3"],
            "argument --image_size: must be a side or height,width, got '1,2,3'",
        ),
        (["--raw", "--image_size=x"], "argument --image_size: must be a side"),
        (["--uncompress", "--max_side=8"], "max_side must not come with uncompress, got 8"),
        (["--uncompress", "--raw"], "raw must not come with uncompress, got True"),
    ],
)
def test_command_reports_mistakes(arguments, words, tmp_path, capsys):
    """A mistake on the command line ends it with an error that begins with the flag."""
    fixed = ["--dataset_name=digits", f"--data_dir={tmp_path}", f"--output_dir={tmp_path}/out"]
    with pytest.raises(SystemExit):
        convert.main([*fixed, *arguments])
    last = capsys.readouterr().err.splitlines()[-1]
    assert re.match(re.escape(words), last.partition("error: ")[2]), last


def test_command_writes_raw_images(tmp_path):
    """The flags of the command are the arguments of the function."""
    fixed = ["--dataset_name=digits", f"--output_dir={tmp_path}", "--splits", "test"]
    convert.main([*fixed, "--raw", "--image_size=6,4"])
    dataset = inputs.get_dataset("tfrecord", "test", tmp_path, channels=1)
    assert (dataset.num_examples, dataset.image_shape) == (360, (6, 4, 1))
