"""A user's own records: texts and numbers in the same order, with the same resume, as images."""

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import records
from tests.inputs import files, sessions


def parse(record):
    """Numbers and a word: no images. AutoGraph makes a `cond` of the `if`."""
    parts = tf.strings.split(record, ",")
    number = tf.strings.to_number(parts[0])
    if number > 10:
        number = -number
    return {"number": number, "word": parts[1]}


def write(folder):
    """Two files with 23 records."""
    folder.mkdir(exist_ok=True)
    records = [f"{number},word{number}".encode() for number in range(23)]
    files.write_records(folder / "a", records[:9])
    files.write_records(folder / "b", records[9:])
    return [str(folder / "a"), str(folder / "b")]


def train(paths, num_runs=None, parse_fn=parse, num_clones=1, **options):
    """The batches of each step and clone."""
    own = {
        name: options.pop(name) for name in {"takes_seed", "skip_corrupt_records"} & options.keys()
    }
    dataset = inputs.RecordDataset(paths, parse_fn, **own)
    options = {"preprocessing": None, "num_clones": num_clones, **options}
    return sessions.train_values(dataset, num_runs, **options)


@pytest.mark.one_mode
@pytest.mark.slow
def test_order_is_that_of_images(tmp_path):
    """Records come in the order that images would, for any clones, and go on at any step. Each
    batch has what the function makes of the records that it numbers.
    """
    dataset = inputs.get_dataset("synthetic", "train", num_examples=23, image_size=4)
    expected = sessions.train_indices(dataset, num_runs=8, batch_size=6, seed=4)
    steps = train(write(tmp_path), 3, batch_size=3, num_clones=2, seed=4, position=5)
    for step, indices in zip(steps, expected[5:], strict=True):
        index, number, word = (
            np.concatenate([batch[key] for batch in step]) for key in ("index", "number", "word")
        )
        assert index.tolist() == indices
        np.testing.assert_array_equal(number, np.where(index > 10, -index, index))
        assert word.tolist() == [b"word%d" % each for each in index]


@pytest.mark.one_mode
def test_evaluation_has_each_record_once(tmp_path):
    """All records in order, the last partial batch included."""
    dataset = inputs.RecordDataset(write(tmp_path), parse)
    batches = sessions.collect(lambda: next(inputs.eval_batches(dataset, batch_size=10)))
    assert [len(batch["word"]) for batch in batches] == [10, 10, 3]
    numbers = np.concatenate([batch["number"] for batch in batches])
    np.testing.assert_array_equal(numbers, [*range(11), *range(-11, -23, -1)])


def parse_lists(record):
    """A number n, and the n % 4 numbers before it, in each form that lists have."""
    number = tf.strings.to_number(tf.strings.split(record, ",")[0], tf.int64)
    ids = tf.range(number - number % 4, number)
    twice = tf.RaggedTensor.from_row_lengths(tf.concat([ids, ids], 0), [tf.size(ids)] * 2)
    sparse = tf.sparse.from_dense(ids + 1)
    return {"number": number, "list": ids, "sparse": sparse, "twice": twice}


def assert_lists(batch):
    """A batch has the lists of its numbers."""
    expected = [[*range(n - n % 4, n)] for n in batch["number"].tolist()]
    assert batch["list"].to_list() == expected
    assert batch["twice"].to_list() == [[each, each] for each in expected]
    values = iter(batch["sparse"].values)
    rows = batch["sparse"].indices[:, 0].tolist()
    assert [[next(values) - 1] for _ in rows] == [[item] for each in expected for item in each]
    assert rows == [row for row, each in enumerate(expected) for _ in each]
    assert batch["sparse"].dense_shape[0] == len(expected)


@pytest.mark.one_mode
def test_lists_of_any_length(tmp_path):
    """Lists, sparse and ragged tensors become batches of clones, of blocks, and of evaluations, the
    last partial one included.
    """
    paths = write(tmp_path)
    for options in ({"batch_size": 3, "num_clones": 2}, {"batch_size": 4, "shuffle_block": 3}):
        steps = train(paths, parse_fn=parse_lists, num_epochs=1, **options)
        for batch in [batch for step in steps for batch in step]:
            assert_lists(batch)
            assert batch["number"].tolist() == batch["index"].tolist()
    dataset = inputs.RecordDataset(paths, parse_lists)
    batches = sessions.collect(lambda: next(inputs.eval_batches(dataset, batch_size=10)))
    assert [len(batch["number"]) for batch in batches] == [10, 10, 3]
    for batch in batches:
        assert_lists(batch)


@pytest.mark.one_mode
def test_lists_beside_corrupt_records(tmp_path):
    """Records that are read again, after one that is corrupt, have their lists as others have."""
    paths = write(tmp_path)
    content = bytearray((tmp_path / "b").read_bytes())
    content[13] ^= 1
    (tmp_path / "b").write_bytes(content)
    options = {"batch_size": 6, "num_epochs": 1, "skip_corrupt_records": 1}
    steps = train(paths, parse_fn=parse_lists, **options)
    assert len(steps) == 3
    for (batch,) in steps:
        assert_lists(batch)


@pytest.mark.slow
@pytest.mark.one_mode
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
@pytest.mark.one_mode
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
    for (batch,) in train([str(tmp_path / "a")], batch_size=4, num_epochs=1, **options):
        assert batch["record"].tolist() == [contents[index] for index in batch["index"]]
    assert read == [5]


@pytest.mark.slow
@pytest.mark.one_mode
def test_corrupt_records_are_named_or_replaced(tmp_path):
    """A record that does not match its checksum is named; tolerated, the next one comes."""
    paths = write(tmp_path)
    content = bytearray((tmp_path / "b").read_bytes())
    content[13] ^= 1
    (tmp_path / "b").write_bytes(content)
    options = {"batch_size": 1, "shuffle": False, "num_epochs": 1}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"b: record 0 .*checksum"):
        train(paths, **options)
    steps = train(paths, skip_corrupt_records=1, **options)
    assert [batch["index"].item() for (batch,) in steps] == [*range(9), 10, *range(10, 23)]
    dataset = inputs.RecordDataset(paths, parse, skip_corrupt_records=1)
    batches = sessions.collect(lambda: next(inputs.eval_batches(dataset, batch_size=10)))
    assert sum(len(batch["word"]) for batch in batches) == 22


@pytest.mark.slow
@pytest.mark.one_mode
def test_record_datasets_reject(tmp_path):
    """Files without records, nothing but bad ones, and images without preprocessing are errors.
    Features that may be no images are not augmented.
    """
    cutmix = inputs.Augmentation(cutmix=1)
    with pytest.raises(ValueError, match=r"augmentation must be None for records .*cutmix=1"):
        train(write(tmp_path / "good"), batch_size=2, augmentation=cutmix)
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
