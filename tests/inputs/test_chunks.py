"""Chunks of examples: how large they are, how their records are read and made."""

import os
import pathlib
import resource

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import records, tfrecords
from model_deploy.inputs.files.corrupt_records import Tolerance
from model_deploy.inputs.reading import chunks, same_thread
from tests.inputs import files, sessions

pytestmark = pytest.mark.one_mode


@pytest.mark.parametrize(
    ("example_bytes", "batch_size", "readers", "size"),
    [
        (602_112, 32, 2, 32),  # photographs: a batch
        (602_112, 32, 27, 32),  # 520,224,768 bytes
        (602_112, 32, 28, 6),  # a batch each would be 539,492,352 bytes
        (602_112, 128, 2, 6),
        (12_288, 128, 2, 64),
        (12_288, 20, 2, 20),
        (2**31, 4, 2, 1),
    ],
)
def test_chunks(example_bytes, batch_size, readers, size):
    """A chunk is a batch if there are 64 examples and 512 MiB in all readers' at most."""
    assert chunks.chunk_size(example_bytes, batch_size, readers) == size


@pytest.mark.parametrize(
    ("largest", "chunk", "readers", "limit", "at_once"),
    [
        (3_000, 64, 2, 20_000, 64),
        (3_000, 64, 2, 1_024, 32),  # a sixteenth, 64 files, of which a reader has a half
        (3_000, 64, 80, 1_024, 1),
        (100_000, 64, 2, resource.RLIM_INFINITY, 10),  # 1 MiB
        (5_000_000, 64, 2, 20_000, 1),
        (3_000, 5, 2, 20_000, 5),
    ],
)
def test_records_at_once(largest, chunk, readers, limit, *, at_once, monkeypatch):
    """A reader opens the records of a chunk together, but 1 MiB at most, and not many files."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    sizes = np.array([16, largest, 20])
    assert chunks.records_at_once(sizes, chunk, readers, is_local=True) == at_once
    assert chunks.records_at_once(sizes, chunk, readers, is_local=False) == 1


def _indexed(paths):
    return records.RecordFiles(tfrecords.index_files(paths, Tolerance(0)))


def _read(found, indices, most, at_once):
    def build():
        tables = [tf.constant(each) for each in found.tables()]
        numbers = tf.constant(indices, tf.int64)
        contents = records.records_in_graph(tables, numbers, most, at_once)
        return contents.batch(most).get_single_element()

    return sessions.run(build).tolist()


@pytest.mark.parametrize("at_once", [1, 7, 8, 10, 20])
@pytest.mark.parametrize("count", [1, 9, 20])
def test_any_number_is_read_together(count, at_once, tmp_path):
    """Records of several files come in their order, however many are opened together."""
    contents = [b"%d" % number * number for number in range(30)]
    files.write_records(tmp_path / "a", contents[:13])
    files.write_records(tmp_path / "b", contents[13:])
    found = _indexed([str(tmp_path / name) for name in "ab"])
    indices = np.random.RandomState(count).permutation(30)[:count].tolist()
    assert _read(found, indices, 20, at_once) == [contents[each] for each in indices]


@pytest.mark.parametrize("at_once", [1, 20])
def test_a_corrupt_record_is_an_error(at_once, tmp_path):
    """A record that does not match its checksum ends the reading of its chunk."""
    path = files.write_records(tmp_path / "a", [b"%d" % number for number in range(30)])
    found = _indexed([str(path)])
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    assert _read(found, [3, 28], 20, at_once) == [b"3", b"28"]
    with pytest.raises(tf.errors.DataLossError):
        _read(found, [3, 29], 20, at_once)


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").exists(), reason="asks Linux for open files")
def test_few_files_are_open(tmp_path, monkeypatch):
    """At most a sixteenth of the files are open that the process may have: a chunk that has been
    read has none.
    """
    path = files.write_records(tmp_path / "a", [b"%d" % number for number in range(400)])
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512, 512))
    opened = []

    def is_open(link):
        try:
            return os.readlink(link) == str(path)
        except FileNotFoundError:  # closed meanwhile
            return False

    def note(record):
        opened.append(sum(map(is_open, pathlib.Path("/proc/self/fd").iterdir())))
        return record

    def parse(record):
        return {"record": tf.ensure_shape(tf.numpy_function(note, [record], tf.string), [])}

    dataset = inputs.RecordDataset([str(path)], parse)
    options = {"preprocessing": None, "batch_size": 64, "num_readers": 2, "include_index": True}
    for (batch,) in sessions.train_values(dataset, 6, **options):
        assert batch["record"].tolist() == [b"%d" % index for index in batch["index"]]
    assert len(opened) >= 6 * 64
    assert max(opened) <= 512 // 16  # and not one more for each of the chunks that wait


@pytest.mark.parametrize("has_condition", [False, True])
def test_examples_are_made_in_the_same_thread(has_condition):
    """The op runs the function itself, but not one that calls others, with the results of `map`."""

    def double(number, other):
        if has_condition:
            number = tf.cond(number > 2, lambda: number, lambda: -number)
        return {"sum": number + other["a"], "other": (other["a"], number)}

    def build():
        elements = tf.data.Dataset.range(5)
        elements = tf.data.Dataset.zip((elements, elements.map(lambda number: {"a": number * 10})))
        one, other = same_thread.mapped(elements, double), elements.map(double)
        assert one.element_spec == other.element_spec
        [op] = [
            op
            for op in tf.compat.v1.get_default_graph().get_operations()
            if op.type == "MapDataset" and op.outputs[0] is tf.data.experimental.to_variant(one)
        ]
        assert op.get_attr("use_inter_op_parallelism") == has_condition
        return [each.batch(5).get_single_element() for each in (one, other)]

    one, other = sessions.run(build)
    sessions.assert_same(tf.nest.flatten(one), tf.nest.flatten(other))
    assert one["sum"].tolist() == [
        0,
        9 if has_condition else 11,
        18 if has_condition else 22,
        33,
        44,
    ]
