"""Corrupt records of TFRecord files: how they are named, skipped, replaced and reported."""

import numpy as np
import pytest
import tensorflow as tf
from absl import logging

from model_deploy import inputs
from model_deploy.inputs.reading import decoding
from model_deploy.inputs.reading.reader import Reader
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode


def get(folder, split="train", **options):
    """The `tfrecord` dataset of a folder."""
    return inputs.get_dataset("tfrecord", split, folder, **options)


def corrupt_file(folder, kind):
    """A dataset of 4 examples with something wrong with record 2; returns its file."""
    images, labels = files.write_examples(folder, [4])
    (path,) = folder.glob("*.tfrecord")
    good = [
        files.example(files.encode(image), label)
        for image, label in zip(images, labels, strict=True)
    ]
    bad = {
        "no image": files.example(None, 1),
        "no label": files.example(b"", None),
        "label": files.example(files.encode(images[2]), 3),
        "not an example": b"\x0a\xff\xff\xff\xff\x7f",
        "not an image": files.example(b"neither JPEG nor PNG", 2),
        "truncated image": files.example(files.encode(images[2])[:60], 2),
        "shape": files.example(files.encode(files.noise([8, 9, 3])), 2),
    }
    if kind in bad:
        files.write_records(path, [*good[:2], bad[kind], good[3]])
        return path
    start = sum(len(files.record_bytes(each)) for each in good[:2])
    content = bytearray(path.read_bytes())
    if kind == "data":
        content[start + 30] ^= 1
    elif kind == "checksum":
        content[start + len(files.record_bytes(good[2])) - 1] ^= 1
    elif kind == "length":
        content[start] ^= 1
    elif kind == "truncated":
        del content[start + 100 :]
    elif kind == "truncated header":
        del content[start + 5 :]
    path.write_bytes(content)
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
@pytest.mark.parametrize(("kind", "message"), KINDS_IN_DATA.items())
def test_corrupt_records_that_are_read_as_a_run_goes(kind, message, tmp_path):
    """The error of the step names file and record. Within the tolerance the next example takes the
    place of a corrupt one in training, so all batches stay whole; an evaluation goes without.
    """
    path = corrupt_file(tmp_path, kind)
    named = rf"{path.name}: record 2 \(from 0\): {message}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=named):
        sessions.eval_values(get(tmp_path), batch_size=1, image_size=8)
    if kind in ("data", "label"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=named):
            sessions.train_values(get(tmp_path), batch_size=1, image_size=8, num_epochs=1)
    dataset = get(tmp_path, skip_corrupt_records=1)
    steps = sessions.train_indices(dataset, batch_size=2, num_epochs=2, image_size=8, shuffle=False)
    assert steps == [[0, 1], [3, 3], [0, 1], [3, 3]]
    batches = sessions.eval_values(dataset, batch_size=2, image_size=8)
    assert [batch["index"].tolist() for batch in batches] == [[0, 1], [3]]
    assert len(dataset.source.tolerance.skipped) == 1


@pytest.mark.parametrize("kind", [*KINDS_IN_DATA, *SHAPE])
def test_tolerated_records_are_left_out_at_the_start(kind, tmp_path):
    """Within the tolerance, the dataset in memory has the other examples, in order."""
    corrupt_file(tmp_path, kind)
    dataset = get(tmp_path, image_size=8, skip_corrupt_records=1)
    assert dataset.num_examples == 3
    np.testing.assert_array_equal(dataset.source.arrays[1], [0, 1, 0])


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
def test_skipped_records_are_reported(tmp_path, monkeypatch):
    """Each skipped record is logged once, with its file, its number and its reason."""
    lines = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: lines.append(text % values))
    path = corrupt_file(tmp_path, "label")
    dataset = get(tmp_path, skip_corrupt_records=3)
    sessions.train_indices(dataset, batch_size=2, num_epochs=3, image_size=8)
    assert lines == [
        f"Skipped corrupt record 1 of at most 3: {path}: record 2 (from 0): "
        "label must be from 0 to 2, got 3"
    ]


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
