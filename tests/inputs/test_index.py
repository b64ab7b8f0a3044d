"""The index of TFRecord files: kept, valid for its file alone, never trusted when damaged."""

import os
import zlib

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import file_systems, inputs
from model_deploy.inputs import convert, index
from model_deploy.inputs.datasets import conversion
from model_deploy.inputs.files import tfrecords
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from tests.inputs import files

pytestmark = pytest.mark.one_mode


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file of 40 records of 4,000 bytes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    records = [files.noise([4000], seed).tobytes() for seed in range(40)]
    (tmp_path / "data").mkdir()
    return files.write_records(tmp_path / "data" / "x_train.tfrecord", records)


def index_of(path):
    """The index file beside a file of records."""
    return path.with_name(f".{path.name}.index")


def lengths(path):
    """The lengths that reading the file, or its index, gives."""
    return tfrecords.index_file(str(path), Tolerance()).lengths.tolist()


def read_nothing(monkeypatch):
    """From here on, going through a file of records is an error."""

    def fail(*_):
        raise AssertionError("the file of records was gone through")

    monkeypatch.setattr(tfrecords, "_find_records", fail)


def test_index_is_kept_and_read(path, monkeypatch):
    """With its index, a file is opened without a look at its records: it has where each record's
    data are, as lengths of 8 bytes each, after a header with their CRC-32.
    """
    first = tfrecords.index_file(str(path), Tolerance())
    read_nothing(monkeypatch)
    again = tfrecords.index_file(str(path), Tolerance())
    np.testing.assert_array_equal(again.offsets, first.offsets)
    assert first.offsets.tolist() == [12 + 4016 * number for number in range(40)]
    assert again.lengths.tolist() == [4000] * 40
    assert again.read(39) == files.noise([4000], 39).tobytes()
    content = index_of(path).read_bytes()
    assert content[-320:] == np.full([40], 4000, "<i8").tobytes()
    assert zlib.crc32(content[-320:]).to_bytes(4, "little") == content[-324:-320]


def test_stale_index_is_made_anew(path):
    """A file of another size or time has an index of its own."""
    assert len(lengths(path)) == 40
    files.write_records(path, [files.noise([5000]).tobytes()] * 40)
    assert lengths(path) == [5000] * 40
    os.utime(path, ns=(1, 1))
    assert tfrecords.read_index(str(path), file_systems.facts_of(path)) is None
    assert lengths(path) == [5000] * 40
    assert tfrecords.read_index(str(path), file_systems.facts_of(path)) is not None


def test_damaged_index_is_not_trusted(path):
    """An index with one changed byte, or cut off, is as if it were not there."""
    expected = lengths(path)
    content = index_of(path).read_bytes()
    for place in (0, 9, 20, 30, 40, 100, len(content) - 1):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        for damaged in (changed, content[:place]):
            index_of(path).write_bytes(damaged)
            assert lengths(path) == expected


def test_index_goes_to_the_cache_if_it_must(path, tmp_path, monkeypatch):
    """Where the folder of the records cannot be written, the index is in the cache."""
    index_of(path).mkdir()  # in its place; permissions do not stop a superuser
    assert len(lengths(path)) == 40
    assert len(list((tmp_path / "cache").rglob("*.index"))) == 1
    read_nothing(monkeypatch)
    assert len(lengths(path)) == 40


def test_truncated_file_has_no_index(path):
    """A file with a broken header is gone through each time, and named each time."""
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=r"record 39 .*is truncated"):
            lengths(path)
    assert not index_of(path).exists()


def test_command_makes_all_indexes(path, capsys):
    """The command makes the index of every file, small ones too."""
    files.write_records(path.with_name("y_train.tfrecord"), [b"abc"])
    index.main([f"--data_dir={path.parent}"])
    assert "train: 2 files, 41 records" in capsys.readouterr().out
    assert len(list(path.parent.glob(".*.index"))) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data_dir=nowhere"], "data_dir of dataset 'tfrecord' must be a folder, got 'nowhere'"),
        (["--data_dir={}", "--splits", "x"], "data_dir must have files *_x*.tfrecord or x-*-of-*"),
    ],
)
def test_command_reports_mistakes(path, arguments, words, capsys):
    """A mistake on the command line ends it with an error that names the flag."""
    with pytest.raises(SystemExit):
        index.main([each.format(path.parent) for each in arguments])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_command_uncompresses(path, compression, tmp_path):
    """Compressed files cannot be read in any order: the error says what to do, and `convert
    --uncompress` writes the same records into files that can be.
    """
    image = files.encode(files.noise([8, 8, 3]))
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for label in (2, 0, 1):
            writer.write(files.example(image, label))
    with pytest.raises(ValueError, match=r"x_train.tfrecord: must not be compressed.*convert"):
        lengths(path)
    (path.parent / "labels.txt").write_text("0:a\n1:b\n2:c\n")
    flags = [f"--data_dir={path.parent}", f"--output_dir={tmp_path / 'out'}", "--splits", "train"]
    for _ in range(2):
        convert.main(["--uncompress", *flags])
    dataset = inputs.get_dataset("tfrecord", "train", tmp_path / "out", image_size=8)
    assert dataset.source.arrays[1].tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match=r"x_train.tfrecord: must be compressed by GZIP or ZLIB"):
        conversion.uncompress(tmp_path / "out", "train", tmp_path / "again", progress=False)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"x_train.tfrecord: must be whole, got"):
        conversion.uncompress(path.parent, "train", tmp_path / "third", progress=False)
