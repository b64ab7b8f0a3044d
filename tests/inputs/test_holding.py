"""What pipelines hold is bounded, whatever the size of the dataset and the number of clones."""

import time

import numpy as np
import pytest
import tensorflow as tf

from model_deploy import inputs
from model_deploy.inputs.files import records
from model_deploy.inputs.pipelines import holding
from tests.inputs import files

pytestmark = pytest.mark.one_mode

tf1 = tf.compat.v1
COUNT = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """2,000 images of 8 x 8."""
    folder = tmp_path_factory.mktemp("records")
    files.write_examples(folder, [COUNT])
    return folder


def read_ahead(monkeypatch, build, num_clones):
    """How many records a pipeline has read when it has given one step, and will not go on."""
    read = []

    def counting(alone, counted):
        def count(*arguments):
            def note(first, count):
                read.append(int(count))
                return first

            number, how_many = counted(arguments)
            noted = tf.numpy_function(note, [number, how_many], tf.int64)
            noted = tf.ensure_shape(noted, number.shape)
            return alone(arguments[0], noted, *arguments[2:])

        return count

    for name, counted in (
        ("records_in_graph", lambda arguments: (arguments[1], tf.size(arguments[1]))),
        ("read_run_in_graph", lambda arguments: arguments[1:]),
    ):
        monkeypatch.setattr(records, name, counting(getattr(records, name), counted))
    with tf.Graph().as_default(), tf1.Session() as session:
        batches = build()
        taken = [next(batches) for _ in range(num_clones)]
        session.run(tf1.global_variables_initializer())
        session.run(tf1.tables_initializer())
        session.run(taken)
        seen = -1
        while seen != sum(read):  # until nothing is read for a second
            seen = sum(read)
            time.sleep(1)
        assert inputs.held_in(tf1.get_default_graph()) == [batches.held]
        return seen, batches.held


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_clones", "options"),
    [
        (4, {"preprocessing": "lenet"}),
        (1, {"preprocessing": "inception", "num_readers": 3}),
        (4, {"preprocessing": "lenet", "augmentation": inputs.Augmentation(mixup=1.0)}),
    ],
    ids=["in batches", "one by one", "mixed"],
)
def test_no_more_is_held_than_is_said(options, num_clones, folder, monkeypatch):
    """While nothing is taken, no more examples are read than the bound says."""
    dataset = inputs.get_dataset("tfrecord", "train", folder)

    def build():
        return inputs.train_batches(
            dataset, batch_size=8, num_clones=num_clones, image_size=8, **options
        )

    seen, held = read_ahead(monkeypatch, build, num_clones)
    assert 2 * num_clones * 8 <= seen <= held.examples < COUNT / 2
    per_label = 4 * dataset.num_classes if "augmentation" in options else 8
    assert held.example_bytes == 8 * 8 * 3 * 4 + per_label


@pytest.mark.slow
def test_windows_are_part_of_it(folder, monkeypatch):
    """With blocks whole windows of records are held besides, in their stored form."""
    dataset = inputs.get_dataset("tfrecord", "train", folder)
    options = {"preprocessing": "lenet", "batch_size": 8, "image_size": 8, "shuffle_block": 4}
    seen, held = read_ahead(monkeypatch, lambda: inputs.train_batches(dataset, **options), 1)
    window = inputs.Order(COUNT, 8, shuffle_block=4).steps_per_window * 8
    assert seen <= held.examples + 3 * window < COUNT
    sizes = np.sort(dataset.source.tables()[-1])
    [file] = folder.glob("*.tfrecord")
    assert sizes.sum() == file.stat().st_size
    assert held.stored_bytes == sizes[-3 * window :].sum()


@pytest.mark.slow
def test_records_of_ones_own(folder, monkeypatch):
    """A pipeline of other records has such a bound, too."""
    paths = [str(path) for path in folder.glob("*.tfrecord")]
    numbers = inputs.RecordDataset(paths, lambda record: {"record": record})
    seen, held = read_ahead(monkeypatch, lambda: inputs.train_batches(numbers, batch_size=8), 1)
    assert 2 * 8 <= seen <= held.examples < COUNT / 2


def test_bound_in_words():
    """A line has all parts of the bound: here 100 * 2,000 + 300,000 + 8 * 125,000 bytes."""
    tables = [np.zeros(100_000, np.int64), np.array([b"ab", b"cdefgh"], object), np.arange(3)]
    spec = {"image": tf.TensorSpec([None, 25, 20], tf.float32)}
    held = holding.held_by(holding.Work(60, 2), spec, 10, 1, tables=tables, num_examples=12_498)
    assert held == holding.Held(100, 2000, 2, 0, 1_000_000)
    line = "inputs hold at most 1.5 MB: 100 examples of 2,000 bytes, records of 0.3 MB, "
    line += "tables of 1.0 MB; and 2 images that are being decoded"
    assert str(holding.Held(100, 2000, 2, 300_000, 1_000_000)) == line


@pytest.mark.slow
@pytest.mark.parametrize("num_clones", [1, 8])
def test_gpus_have_a_pipeline_each(num_clones):
    """Clones on GPUs hold as much each; images in memory are there once."""
    digits = inputs.get_dataset("digits", "train")
    options = {"preprocessing": "lenet", "batch_size": 4, "num_preprocessing_threads": 3}
    devices = [f"/device:GPU:{i}" for i in range(num_clones)]
    batches = inputs.train_batches(digits, num_clones=num_clones, clone_devices=devices, **options)
    # 3 batches in the making, 1 that waits, 2 in reserve, 1 taken.
    assert batches.held.examples == num_clones * 7 * 4
    in_order = digits.num_examples // (4 * num_clones) * 4 * num_clones
    assert batches.held.table_bytes == digits.num_examples * (28 * 28 + 8) + 2 * 8 * in_order
