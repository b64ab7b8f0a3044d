"""A user's own records: texts and numbers in the same order, with the same resume, as images."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import records
from tests.inputs import files, sessions


def parse(record):
    """Numbers and a word: no images."""
    parts = tf.strings.split(record, ",")
    return {"square": tf.strings.to_number(parts[0]) ** 2, "word": parts[1]}


def write(folder):
    """Two files with 23 records."""
    folder.mkdir(exist_ok=True)
    records = [f"{number},word{number}".encode() for number in range(23)]
    files.write_records(folder / "a", records[:9])
    files.write_records(folder / "b", records[9:])
    return [str(folder / "a"), str(folder / "b")]


def train(paths, num_runs=None, parse_fn=parse, num_clones=1, **options):
    """The batches of each step and clone."""
    dataset_options = {
        name: options.pop(name)
        for name in ("takes_seed", "skip_corrupt_records")
        if name in options
    }
    dataset = inputs.RecordDataset(paths, parse_fn, **dataset_options)

    def build():
        options.setdefault("include_index", True)
        batches = inputs.train_batches(dataset, num_clones=num_clones, **options)
        return [next(batches) for _ in range(num_clones)]

    return sessions.collect(build, num_runs)


@pytest.mark.slow
@pytest.mark.parametrize("shuffle_block", [None, 3])
def test_features_belong_to_their_records(shuffle_block, tmp_path):
    """Each batch has what the function makes of the records that it numbers, each once."""
    seen = []
    for (batch,) in train(write(tmp_path), batch_size=5, num_epochs=1, shuffle_block=shuffle_block):
        np.testing.assert_array_equal(batch["square"], batch["index"].astype(np.float32) ** 2)
        assert batch["word"].tolist() == [b"word%d" % index for index in batch["index"]]
        seen += batch["index"].tolist()
    assert len(seen) == len(set(seen)) == 20


@pytest.mark.slow
def test_order_is_that_of_images(tmp_path):
    """Records come in the order that images would, for any clones, and go on at any step."""
    paths = write(tmp_path)
    dataset = inputs.get_dataset("synthetic", "train", num_examples=23, image_size=4)
    expected = sessions.train_indices(dataset, num_runs=8, batch_size=6, seed=4)
    steps = train(paths, 8, batch_size=3, num_clones=2, seed=4)
    got = [np.concatenate([batch["index"] for batch in step]).tolist() for step in steps]
    assert got == expected
    rest = train(paths, 3, batch_size=6, seed=4, position=5)
    assert [batch["index"].tolist() for (batch,) in rest] == expected[5:]


def test_evaluation_has_each_record_once(tmp_path):
    """All records in order, the last partial batch included."""
    dataset = inputs.RecordDataset(write(tmp_path), parse)
    batches = sessions.collect(lambda: next(inputs.eval_batches(dataset, batch_size=10)))
    assert [len(batch["word"]) for batch in batches] == [10, 10, 3]
    squares = np.concatenate([batch["square"] for batch in batches])
    np.testing.assert_array_equal(squares, np.arange(23.0) ** 2)


@pytest.mark.slow
def test_seed_is_that_of_the_place(tmp_path):
    """With `takes_seed`, what is drawn follows from the seed and the place alone."""

    def draw(record, seed):
        del record
        return {"draw": tf.random.stateless_uniform([], seed), "seed": seed}

    options = {"parse_fn": draw, "takes_seed": True, "seed": 7}
    whole = train(write(tmp_path), 2, batch_size=4, **options)
    halves = train(write(tmp_path), 2, batch_size=2, num_clones=2, **options)
    for (batch,), pair in zip(whole, halves, strict=True):
        np.testing.assert_array_equal(batch["draw"], np.concatenate([b["draw"] for b in pair]))
    assert [b["seed"].tolist() for (b,) in whole[:1]] == [[[7, 0], [7, 1], [7, 2], [7, 3]]]


@pytest.mark.slow
def test_neighbours_are_read_together(tmp_path, monkeypatch):
    """With blocks every record comes from a request for some, but empty ones: each from its own."""
    alone = records.read_in_graph
    read = []

    def note(index):
        read.append(int(index))
        return index

    def read_in_graph(tables, index):
        return alone(tables, tf.ensure_shape(tf.numpy_function(note, [index], tf.int64), []))

    monkeypatch.setattr(records, "read_in_graph", read_in_graph)
    contents = [b"" if number == 5 else b"%d" % number for number in range(16)]
    files.write_records(tmp_path / "a", contents)
    options = {"parse_fn": lambda record: {"record": record}, "shuffle_block": 4}
    steps = train([str(tmp_path / "a")], batch_size=4, num_epochs=1, **options)
    got = {
        index: record
        for (batch,) in steps
        for index, record in zip(batch["index"].tolist(), batch["record"].tolist(), strict=True)
    }
    assert [got[number] for number in range(16)] == contents
    assert read == [5]


def test_autograph_goes_through_the_function(tmp_path):
    """A Python `if` on a tensor works in what users write."""

    def sign(record):
        number = tf.strings.to_number(tf.strings.split(record, ",")[0])
        if number > 10:
            number = -number
        return {"number": number}

    for (batch,) in train(write(tmp_path), batch_size=5, num_epochs=1, parse_fn=sign):
        index = batch["index"].astype(np.float32)
        np.testing.assert_array_equal(batch["number"], np.where(index > 10, -index, index))


@pytest.mark.slow
@pytest.mark.parametrize("shuffle_block", [None, 4])
def test_corrupt_records_are_named_or_replaced(shuffle_block, tmp_path):
    """A record that does not match its checksum is named; tolerated, the next one comes."""
    paths = write(tmp_path)
    content = bytearray((tmp_path / "b").read_bytes())
    content[13] ^= 1
    (tmp_path / "b").write_bytes(content)
    options = {"batch_size": 1, "shuffle": False, "num_epochs": 1}
    options["shuffle_block"] = shuffle_block
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"b: record 0 .*checksum"):
        train(paths, **options)
    steps = train(paths, skip_corrupt_records=1, **options)
    assert [batch["index"].item() for (batch,) in steps] == [*range(9), 10, *range(10, 23)]
    dataset = inputs.RecordDataset(paths, parse, skip_corrupt_records=1)
    batches = sessions.collect(lambda: next(inputs.eval_batches(dataset, batch_size=10)))
    assert sum(len(batch["word"]) for batch in batches) == 22


@pytest.mark.slow
def test_record_datasets_reject(tmp_path):
    """Files without records, nothing but bad ones, and images without preprocessing are errors."""
    with pytest.raises(ValueError, match="number of records in paths must be at least 1, got 0"):
        inputs.RecordDataset([], parse)
    files.write_records(tmp_path / "a", [b"abc"])
    content = bytearray((tmp_path / "a").read_bytes())
    content[13] ^= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a good record, got 1"):
        train([str(tmp_path / "a")], batch_size=1, skip_corrupt_records=1)
    digits = inputs.get_dataset("digits", "train")
    for build in (inputs.train_batches, inputs.eval_batches):
        with pytest.raises(ValueError, match=r"preprocessing must be given for .*, got None"):
            build(digits)
