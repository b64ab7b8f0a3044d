"""Conversion to TFRecords: the same examples, atomic, and resumed where it stopped."""

import os
import sys
import time

import numpy as np
import pytest

from model_deploy import inputs
from model_deploy.inputs import convert
from model_deploy.inputs.datasets import conversion, preparation
from model_deploy.inputs.files import tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from tests.inputs import files
from tests.processes.harness import Processes

pytestmark = pytest.mark.one_mode


def tiny(num_examples=10):
    """A dataset in memory."""
    return inputs.get_dataset("synthetic", "train", num_examples=num_examples, image_size=6)


@pytest.mark.parametrize("num_shards", [3, 10])
def test_converted_dataset_is_the_same(num_shards, tmp_path):
    """Reading the TFRecords gives the images, labels and class names that went in."""
    dataset = tiny()
    paths = conversion.convert(
        dataset, tmp_path, name="mine", num_shards=num_shards, progress=False
    )
    assert [os.path.basename(path) for path in paths] == [
        f"mine_train_{shard:05d}-of-{num_shards:05d}.tfrecord" for shard in range(num_shards)
    ]
    read = inputs.get_dataset("tfrecord", "train", tmp_path, file_prefix="mine", image_size=6)
    assert read.class_names == dataset.class_names
    for written, again in zip(dataset.source.arrays, read.source.arrays, strict=True):
        np.testing.assert_array_equal(written, again)


def test_encoded_images_are_written_as_they_are(tmp_path):
    """JPEG and PNG files keep their bytes."""
    files.write_folder(tmp_path / "images", count=3)
    (tmp_path / "images" / "cat" / "x.jpg").write_bytes(
        files.encode(files.noise([9, 7, 3]), "jpeg")
    )
    dataset = inputs.get_dataset("folder", "train", tmp_path / "images", test_percent=0)
    conversion.convert(dataset, tmp_path / "out", num_shards=2, progress=False)
    read = inputs.get_dataset("tfrecord", "train", tmp_path / "out", file_prefix="folder")
    assert [read.source.read(number) for number in range(7)] == [
        dataset.source.read(number) for number in range(7)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delay_secs", "more_flags"),
    [pytest.param(0.0, ["--raw"], id="at once"), pytest.param(0.3, [], id="later")],
)
def test_killed_conversion_leaves_no_half_file(delay_secs, more_flags, tmp_path):
    """After a kill, every file that has its name is whole; the command then finishes."""
    command = [sys.executable, "-m", "model_deploy.inputs.convert"]
    flags = ["--dataset_name=digits", f"--output_dir={tmp_path}"]
    flags += ["--splits", "train", "--num_shards=40", *more_flags]
    with Processes(tmp_path) as processes:
        process = processes.start("killed", [*command, *flags], guarded=False)
        while not any(tmp_path.glob("*00003-of-*")) and process.is_running:
            time.sleep(0.01)
        time.sleep(delay_secs)
        process.end()
    done = sorted(tmp_path.glob("*.tfrecord"))
    assert len(done) >= 1
    for path in done:
        assert tfrecords.index_file(str(path), Tolerance()).offsets.size in (35, 36)
    if len(done) < 40:
        with pytest.raises(ValueError, match="must have all 40 files of split 'train', got none"):
            inputs.get_dataset("tfrecord", "train", tmp_path, file_prefix="digits")
    convert.main(flags)
    read = inputs.get_dataset(
        "tfrecord", "train", tmp_path, file_prefix="digits", image_size=28, channels=1
    )
    digits = inputs.get_dataset("digits", "train")
    np.testing.assert_array_equal(read.source.arrays[0], digits.source.arrays[0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--dataset_name=mnist", "data_dir must name the folder of dataset 'mnist', got None"),
        ("--dataset_name=flowers --data_dir={}", "data_dir must have files flowers_train*"),
        ("--splits x", "splits of dataset 'digits' must be one of train, test, got 'x'"),
        ("--num_shards=0", "num_shards must be from 1 to the 1437 examples, got 0"),
        ("--output_dir={}/file", "output_dir must be a folder that can be written, got {}/file"),
        ("--quality=90", "quality must come with max_side, got 90"),
        ("--max_side=0", "max_side must be at least 1, got 0"),
        ("--image_size=8", "image_size must come with raw, got 8"),
        ("--raw --image_size=1,2,3", "argument --image_size: must be a side or height,width, got"),
        ("--raw --image_size=x", "argument --image_size: must be a side"),
        ("--uncompress --raw --data_dir={}", "raw must not come with uncompress, got True"),
    ],
)
def test_command_reports_mistakes(tmp_path, capsys, arguments, words):
    """A mistake on the command line ends it with an error that begins with the flag."""
    (tmp_path / "file").touch()
    given = arguments.format(tmp_path).split()
    with pytest.raises(SystemExit):
        convert.main(["--dataset_name=digits", f"--output_dir={tmp_path}", *given])
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.partition("error: ")[2].startswith(words.format(tmp_path)), last


def test_command_converts_all_splits(tmp_path, capsys):
    """By default the train and test splits are converted, with a progress bar. The flags of the
    command are the arguments of the function.
    """
    flags = ["--dataset_name=digits", f"--output_dir={tmp_path}", "--output_name=d"]
    convert.main([*flags, "--raw", "--image_size=6,4"])
    for split, count in (("train", 1437), ("test", 360)):
        dataset = inputs.get_dataset("tfrecord", split, tmp_path, channels=1)
        assert (dataset.num_examples, dataset.image_shape) == (count, (6, 4, 1))
    assert "d_test: 100%" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_side": 2.5}, "max_side must be an integer, got 2.5"),
        ({"max_side": 8, "quality": 0}, "quality must be at least 1, got 0"),
        ({"max_side": 8, "quality": 101}, "quality must be at most 100, got 101"),
        ({"max_side": 8, "raw": True}, "max_side must not come with raw, .* got 8"),
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
        ({}, {"num_shards": 3}, "got num_shards 2 instead of 3"),
        ({}, {"dataset": tiny(11)}, "got num_examples 10 instead of 11"),
        ({}, {"num_shards": 11}, "num_shards must be from 1 to the 10 examples, got 11"),
        ({}, _MAX_SIDE, "got max_side None instead of 4"),
        (_MAX_SIDE, {}, "got max_side 4 instead of None"),
        (_MAX_SIDE, {"max_side": 5}, "got max_side 4 instead of 5"),
        (_MAX_SIDE, _MAX_SIDE | {"quality": 90}, "got quality 95 instead of 90"),
        (_MAX_SIDE, _RAW, "instead of"),
        (_RAW, _RAW | {"image_size": 5}, r"got image_size \[4, 4\] instead of \[5, 5\]"),
    ],
)
def test_other_conversions_are_refused(first, second, message, tmp_path):
    """Shards of another conversion are not mixed with new ones."""
    given = {"dataset": tiny(), "output_dir": tmp_path, "num_shards": 2, "progress": False}
    inputs.convert_dataset(**given | first)
    with pytest.raises(ValueError, match=message):
        inputs.convert_dataset(**given | second)
