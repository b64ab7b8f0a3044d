"""Corrupt records of TFRecord files: how they are named, skipped, replaced and reported."""

import re

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from model_deploy import inputs
from model_deploy.inputs.reading import decoding
from model_deploy.inputs.reading.reader import Reader
from tests.inputs import files, sessions
from tests.inputs.files import get

pytestmark = pytest.mark.one_mode


def corrupt_file(folder, *kinds):
    """Good examples with a corrupt one of each kind after every second; returns their file."""
    images, labels = files.write_examples(folder, [2 * len(kinds) + 1])
    (path,) = folder.glob("*.tfrecord")
    good = [
        files.record_bytes(files.example(files.encode(image), label))
        for image, label in zip(images, labels, strict=True)
    ]
    png, record = files.encode(images[2]), good[2]
    examples = {
        "no image": files.example(None, 1),
        "no label": files.example(b"", None),
        "label": files.example(png, 3),
        "not an example": b"\x0a\xff\xff\xff\xff\x7f",
        "not an image": files.example(b"neither JPEG nor PNG", 2),
        "truncated image": files.example(png[:60], 2),
        "shape": files.example(files.encode(files.noise([8, 9, 3])), 2),
    }
    bad = {kind: files.record_bytes(each) for kind, each in examples.items()} | {
        "data": record[:30] + bytes([record[30] ^ 1]) + record[31:],
        "checksum": record[:-1] + bytes([record[-1] ^ 1]),
        "length": bytes([record[0] ^ 1]) + record[1:],
        "truncated": record[:100],
        "truncated header": record[:5],
    }
    found = []
    for number, kind in enumerate(kinds):
        found += [*good[2 * number : 2 * number + 2], bad[kind]]
    path.write_bytes(b"".join(found if kinds[-1] in KINDS_IN_HEADERS else [*found, good[-1]]))
    return path


KINDS_IN_HEADERS = {
    "length": "the length at byte .* does not match its checksum",
    "truncated": "must end at byte .*, but the file is truncated at",
    "truncated header": "its header is truncated at byte",
}
KINDS_IN_DATA = {
    "data": "its data do not match their checksum",
    "checksum": "its data do not match their checksum",
    "no image": "image/encoded must have 1 value, got 0",
    "no label": "image/class/label must have 1 value, got 0",
    "label": "label must be from 0 to 2, got 3",
    "not an example": "must be a tf.train.Example, and does not parse",
    "not an image": "its image does not decode: ",
    "truncated image": "its image does not decode: ",
}
SHAPE = {"shape": r"its image must be \[8, 8, 3\], got \[8, 9, 3\]"}


@pytest.mark.parametrize(("kind", "message"), (KINDS_IN_HEADERS | KINDS_IN_DATA | SHAPE).items())
def test_corrupt_records_are_named_at_the_start(kind, message, tmp_path):
    """In a dataset that is kept in memory, a corrupt record stops `get_dataset`."""
    path = corrupt_file(tmp_path, kind)
    with pytest.raises(
        inputs.CorruptRecordError, match=rf"{path.name}: record 2 \(from 0\): {message}"
    ) as caught:
        get(tmp_path, image_size=8)
    assert (caught.value.path, caught.value.record) == (str(path), 2)


@pytest.mark.slow
def test_corrupt_records_that_are_read_as_a_run_goes(tmp_path, monkeypatch):
    """The error of the step names file and record. Within the tolerance the next example takes the
    place of a corrupt one in training, so all batches stay whole; an evaluation goes without. Each
    skipped record is logged once, with its file, its number and its reason.
    """
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: lines.append(text % values))
    path = corrupt_file(tmp_path, *KINDS_IN_DATA)
    options = {"batch_size": 3, "image_size": 8}
    named = rf"{path.name}: record \d+ \(from 0\): "
    for read in (sessions.eval_values, sessions.train_values):
        with pytest.raises(tf.errors.InvalidArgumentError, match=named):
            read(get(tmp_path), **options)
    dataset = get(tmp_path, skip_corrupt_records=10)
    steps = sessions.train_indices(dataset, num_epochs=1, shuffle=False, **options)
    assert steps == [[first, first + 1, first + 3] for first in range(0, 24, 3)]
    batches = sessions.eval_values(dataset, **options)
    good = [number for number in range(25) if number % 3 != 2]
    assert [*np.concatenate([batch["index"] for batch in batches])] == good
    assert len(dataset.source.tolerance.skipped) == len(lines) == 8
    named = {int(re.search(r"record (\d+) \(from 0\): ", line)[1]): line for line in lines}
    for number, message in enumerate(KINDS_IN_DATA.values()):
        line = rf"Skipped corrupt record \d of at most 10: {path}: record {3 * number + 2} .*: "
        assert re.match(line + message, named[3 * number + 2])


def test_tolerated_records_are_left_out_at_the_start(tmp_path):
    """Within the tolerance, the dataset in memory has the other examples, in order."""
    corrupt_file(tmp_path, *KINDS_IN_DATA, *SHAPE)
    dataset = get(tmp_path, image_size=8, skip_corrupt_records=9)
    np.testing.assert_array_equal(dataset.source.arrays[1], np.arange(19) % 3)


@pytest.mark.parametrize(("kind", "message"), KINDS_IN_HEADERS.items())
def test_corrupt_headers(kind, message, tmp_path):
    """A file that is cut off stops `get_dataset`, though no data have been read; within the
    tolerance, it has the records before that.
    """
    path = corrupt_file(tmp_path, kind)
    with pytest.raises(inputs.CorruptRecordError, match=f"{path.name}: record 2 .*{message}"):
        get(tmp_path)
    assert get(tmp_path, skip_corrupt_records=1).num_examples == 2


@pytest.mark.slow
def test_only_corrupt_records_end_a_training(tmp_path):
    """If no example can be read, that is an error and no endless search."""
    files.write_records(tmp_path / "x_train.tfrecord", [b"\xff"] * 3)
    dataset = get(tmp_path, num_classes=1, skip_corrupt_records=3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a good record, got 3"):
        sessions.train_values(dataset, batch_size=1, image_size=8)


def test_reader_rejects_what_no_longer_reads(tmp_path):
    """A file that vanishes after it was indexed is named by the error."""
    files.write_examples(tmp_path, [1])
    dataset = get(tmp_path)
    (path,) = tmp_path.glob("*.tfrecord")
    path.unlink()
    reader = Reader(dataset.source, 1, (None, None, 3), decoding.Decoder(3), replace=False)
    with pytest.raises(ValueError, match=rf"{path.name}: record 0 .*cannot be read: .*No such"):
        reader.read(np.int64(0), np.zeros([2], np.int64))
