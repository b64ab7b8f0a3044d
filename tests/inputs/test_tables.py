"""Tables, CSV and Parquet alike: order, shards and resume of images, each row with its values."""

import dataclasses

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, deploy, inputs
from model_deploy.inputs.pipelines import staging
from tests.inputs import sessions, tables

COUNT = 23


@pytest.fixture(scope="module", params=tables.FORMATS)
def paths(request, tmp_path_factory):
    """Two files with 23 rows, in each format."""
    return tables.write(tmp_path_factory.mktemp(request.param), request.param)


def train(dataset, num_runs=None, **options):
    """The batches of each step and clone."""
    return sessions.train_values(dataset, num_runs, preprocessing=None, **options)


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize("block", [None, 4])
def test_order_is_that_of_images(paths, block):
    """Rows come in the order that images would, with blocks, too, however a global batch is divided
    over clones and replicas, and go on at any step.
    """
    images = inputs.get_dataset("synthetic", "train", num_examples=COUNT, image_size=4)
    options = {"seed": 4, "shuffle_block": block}
    expected = sessions.train_indices(images, 8, batch_size=8, **options)
    dataset = tables.read(paths)
    replicas = [
        train(
            *(dataset, 5),
            **{"batch_size": 2, "num_clones": 2, "num_shards": 2, "shard_index": index},
            **{"position": 3, **options},
        )
        for index in range(2)
    ]
    for step, indices in enumerate(expected[3:]):
        batches = [batch for replica in replicas for batch in replica[step]]
        assert np.concatenate([batch["index"] for batch in batches]).tolist() == indices
        for batch in batches:
            tables.assert_rows(batch, tables.rows(COUNT))


def test_evaluation_has_each_row_once(paths):
    """All rows in order, the last partial batch and its lists included."""
    batches = sessions.eval_values(tables.read(paths), preprocessing=None, batch_size=10)
    assert [batch["index"].tolist() for batch in batches] == [
        [*range(10)],
        [*range(10, 20)],
        [20, 21, 22],
    ]
    for batch in batches:
        tables.assert_rows(batch, tables.rows(COUNT))


@pytest.mark.one_mode
def test_shapes_are_known(paths):
    """A training batch has its size; lists are ragged; what is held is said."""
    batches = inputs.train_batches(tables.read(paths), batch_size=4, num_clones=2)
    batch = next(batches)
    shapes = {name: value.shape.as_list() for name, value in batch.items()}
    assert shapes == {"label": [4], "price": [4], "user": [4], "seen": [4, None]}
    assert isinstance(batch["seen"], tf.RaggedTensor)
    assert batches.held.examples >= 4 * 2


def break_rows(folder, form):
    """The 23 rows with two that no label can be made of: 3, and 20 in the second file."""
    paths = tables.write(folder, form)
    table = tables.rows(COUNT)
    for number in (3, 20):
        table[number]["label"] = None
    for path, part in zip(paths, (table[:9], table[9:]), strict=True):
        (tables.write_csv if form == "csv" else tables.write_parquet)(path, part)
    return paths


@pytest.mark.slow
@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("form", "where"), [("csv", "record 11 .*: line 13"), ("parquet", "record 11 .*")]
)
def test_bad_rows_are_named_or_replaced(form, where, tmp_path):
    """A row without a label is named, by file and place; tolerated, the next one takes its place
    in training, also where neighbours are read together, and evaluation leaves it out.
    """
    paths = break_rows(tmp_path / "broken", form)
    message = rf"b\.{form}: {where}: column 'label' must have a value or a default, got"
    options = {"batch_size": 5, "num_epochs": 1}
    with pytest.raises(inputs.CorruptRecordError, match=message):
        tables.read(paths).source.check(20)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)record 3 .*column 'label'"):
        train(tables.read(paths), shuffle=False, **options)
    for further in ({"shuffle": False}, {"shuffle_block": 4}):
        dataset = tables.read(paths, skip_corrupt_records=2)
        good = sessions.train_indices(
            inputs.get_dataset("synthetic", "train", num_examples=COUNT, image_size=4),
            **{**options, **further},
        )
        steps = train(dataset, **options, **further)
        found = [[*np.concatenate([batch["index"] for batch in step])] for step in steps]
        assert found == [[number + (number in (3, 20)) for number in step] for step in good]
    batches = sessions.eval_values(dataset, preprocessing=None, batch_size=10)
    seen = np.concatenate([batch["index"] for batch in batches]).tolist()
    assert seen == [number for number in range(COUNT) if number not in (3, 20)]
    assert len(dataset.tolerance.skipped) == 2


@pytest.mark.one_mode
@pytest.mark.parametrize("form", tables.FORMATS)
def test_nothing_but_bad_rows(form, tmp_path):
    """Training cannot replace a row where there is no good one."""
    path = tmp_path / f"a.{form}"
    write = tables.write_csv if form == "csv" else tables.write_parquet
    write(path, [row | {"label": None} for row in tables.rows(2)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a good record, got 2"):
        train(tables.read([path], skip_corrupt_records=2), batch_size=1)


# What clones and parts take is a global batch of eight rows, however it is divided.
# The way from batches on is the same for all formats.
DIVISIONS = [
    ("csv", {"num_clones": 2, "accumulate_steps": 2, "copy_clones": True}, 2),
    ("csv", {"num_clones": 2}, 4),
    ("parquet", {"num_clones": 2, "copy_clones": True}, 4),
]


def train_on_lists(dataset, batch_size, **settings):
    """The losses of four steps, and the table of embeddings after them."""
    config = DeploymentConfig(clone_on_cpu=True, **settings)
    parts = config.num_clones * settings.get("accumulate_steps", 1)

    def model_fn(batches):
        batch = next(batches)
        rows = tf.get_variable("rows", [40], initializer=tf.ones_initializer())
        sums = tf.reduce_sum(
            tf.ragged.map_flat_values(lambda ids: tf.gather(rows, ids), batch["seen"]), 1
        )
        tf.losses.mean_squared_error(batch["label"], sums + batch["price"])

    with tf.Graph().as_default(), tf.Session() as session:
        batches = inputs.train_batches(dataset, batch_size=batch_size, num_clones=parts)
        model = deploy(
            config, model_fn, [batches], optimizer=tf.train.GradientDescentOptimizer(0.01)
        )
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(tf.tables_initializer())
        losses = [session.run(model.train_op) for _ in range(4)]
        [rows] = [each for each in tf.trainable_variables() if each.op.name == "rows"]
        return losses, session.run(rows)


@pytest.mark.one_mode
@pytest.mark.slow
@pytest.mark.parametrize("form", tables.FORMATS)
def test_lists_train_in_clones_and_parts(form, tmp_path):
    """Two clones, called or copied, in parts or not, end where one clone on whole batches ends."""
    dataset = tables.read(tables.write(tmp_path / "data", form))
    expected = train_on_lists(dataset, 8)
    for settings, batch_size in (each[1:] for each in DIVISIONS if each[0] == form):
        found = train_on_lists(dataset, batch_size, **settings)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, err_msg=str(settings))


@pytest.mark.one_mode
@pytest.mark.parametrize("paths", ["csv"], indirect=True)
def test_lists_are_staged(paths, monkeypatch):
    """Batches with lists come to devices of their own as they do to the CPU of the pipeline."""
    devices = ["/device:CPU:1", "/device:CPU:2"]
    monkeypatch.setattr(staging, "is_apart", lambda device: device in devices)

    def steps(**options):
        with tf.Graph().as_default():
            batches = inputs.train_batches(
                tables.read(paths, {"seen": tables.COLUMNS["seen"]}),
                **{"batch_size": 3, "num_clones": 2, **options},
            )
            taken = [next(batches) for _ in range(2)]
            with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
                session.run(tf.global_variables_initializer())
                session.run(tf.tables_initializer())
                runs = [session.run(taken) for _ in range(4)]
                return [[batch["seen"].to_list() for batch in step] for step in runs]

    assert steps(clone_devices=devices, inputs_device="/device:CPU:0") == steps()


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"batch_size": -1}, "batch_size must be at least 1, got -1", id="batch"),
        pytest.param({"batch_size": 24}, "at most the 23 examples .*, got 24", id="large"),
        pytest.param({"num_readers": 0}, "num_readers must be at least 1, got 0", id="readers"),
        pytest.param(
            {"augmentation": inputs.Augmentation(mixup=1)}, "augmentation must be None", id="mixed"
        ),
    ],
)
def test_batches_of_tables_reject(options, message, paths):
    """Settings that no table can be read with say which value they got."""
    with pytest.raises(ValueError, match=message):
        train(tables.read(paths), 1, **{"batch_size": 2, **options})
    if "batch_size" in options and options["batch_size"] < 0:
        with pytest.raises(ValueError, match=message):
            inputs.eval_batches(tables.read(paths), **options)


@pytest.mark.one_mode
@pytest.mark.parametrize("form", tables.FORMATS)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({}, "columns must map names to dtypes, at least one, got {}", id="none"),
        pytest.param(["label"], r"columns must map names .*, got \['label'\]", id="list"),
        pytest.param({"click": "int64"}, r"columns must be among .*, got 'click'", id="missing"),
        pytest.param(
            {"label": "int"}, "column 'label': dtype must be one of .*, got 'int'", id="dtype"
        ),
        pytest.param({"label": "float64"}, "dtype must be one of .*, got 'float64'", id="wide"),
    ],
)
def test_tables_reject_columns(form, columns, message, tmp_path):
    """Columns that files do not have, and what is no column, are named."""
    with pytest.raises(ValueError, match=message):
        tables.read(tables.write(tmp_path / "data", form), columns)


@pytest.mark.one_mode
@pytest.mark.parametrize("form", tables.FORMATS)
def test_tables_reject_files(form, tmp_path):
    """A file that is not there, no file, and one path in place of a list are errors."""
    read = inputs.CsvDataset if form == "csv" else inputs.ParquetDataset
    missing = tmp_path / f"none.{form}"
    with pytest.raises(ValueError, match=rf"file of a table must be readable, got .*none\.{form}"):
        read([missing], tables.COLUMNS)
    with pytest.raises(ValueError, match=r"paths must be a list of files, at least one, got \[\]"):
        read([], tables.COLUMNS)
    with pytest.raises(ValueError, match=rf"paths must be a list of files, .*none\.{form}"):
        read(str(missing), tables.COLUMNS)


@pytest.mark.one_mode
def test_index_is_a_name_of_its_own(tmp_path):
    """A column "index" and the numbers of rows do not go together."""
    path = tmp_path / "a.csv"
    path.write_text("index\n1\n2\n")
    dataset = inputs.CsvDataset([path], {"index": "int64"})
    with pytest.raises(ValueError, match="include_index must be False with a column 'index'"):
        inputs.train_batches(dataset, batch_size=1, include_index=True)


@pytest.mark.one_mode
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"dtype": "int64", "default": 0.5}, "of dtype int64, got 0.5", id="int"),
        pytest.param({"dtype": "int64", "default": 2**63}, "of dtype int64, got 92", id="large"),
        pytest.param({"dtype": "float32", "default": "0"}, "of dtype float32, got '0'", id="text"),
        pytest.param({"dtype": "string", "default": 0}, "of dtype string, got 0", id="number"),
        pytest.param({"dtype": "int64", "default": True}, "of dtype int64, got True", id="bool"),
        pytest.param(
            {"dtype": "int64", "default": 0, "is_list": True},
            "None for a list, .*, got 0",
            id="list",
        ),
        pytest.param({"dtype": "int64", "is_list": 1}, "is_list must be True or False", id="flag"),
        pytest.param({"dtype": None}, "dtype must be one of .*, got None", id="dtype"),
    ],
)
def test_columns_reject(options, message):
    """A column that cannot be says which value it got."""
    with pytest.raises(ValueError, match=message):
        inputs.Column(**options)


def test_columns_are_values():
    """Equal columns are equal, however their dtype is named."""
    column = inputs.Column("int64", default=3)
    assert column == inputs.Column(tf.int64, default=3) == dataclasses.replace(column)


@pytest.mark.one_mode
def test_columns_may_have_any_name(tmp_path):
    """A name that no op can have is one of a column, and two of these stay apart."""
    path = tmp_path / "a.csv"
    path.write_text("unit price (€),unit price ($),_id,\n1,2,3,4\n", encoding="utf-8")
    names = ["unit price (€)", "unit price ($)", "_id", ""]
    dataset = inputs.CsvDataset([path], dict.fromkeys(names, "float32"))
    [[found]] = train(dataset, 1, batch_size=1)
    assert [found[name].tolist() for name in names] == [[1], [2], [3], [4]]
