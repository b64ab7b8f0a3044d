"""Parquet files: which types become what, what is kept in memory, and what is refused."""

import decimal
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model_deploy import file_systems, inputs
from model_deploy.inputs.tables.parquet_rows import Rows
from model_deploy.inputs.tables.row_groups import RowGroups
from tests.inputs import sessions

pytestmark = pytest.mark.one_mode


def write(folder, columns, group=2):
    """A file of some Arrow arrays, by name; returns its path."""
    path = folder / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


def values(path, columns=None, **options):
    """The columns of a file, of all rows at once."""
    dataset = inputs.ParquetDataset([path], columns, **options)
    [batch] = sessions.eval_values(dataset, preprocessing=None, batch_size=100)
    del batch["index"]
    return batch


TYPES = [
    (pa.array([1, 0, 1], pa.int8()), "int64", [1, 0, 1]),
    (pa.array([1, 2**63 - 1, 3], pa.uint64()), "int64", [1, 2**63 - 1, 3]),
    (pa.array([True, False, True]), "int64", [1, 0, 1]),
    (pa.array([0.5, 2, -3]), "float32", [0.5, 2, -3]),
    (pa.array([0.5, 2, -3], pa.float32()), "float32", [0.5, 2, -3]),
    (pa.array(["a", "é", ""]), "string", [b"a", "é".encode(), b""]),
    (pa.array([b"a", b"\xff", b""], pa.large_binary()), "string", [b"a", b"\xff", b""]),
    (pa.array(["a", "é", "a"]).dictionary_encode(), "string", [b"a", "é".encode(), b"a"]),
    (pa.array([[1, 2], [], [3]]), "int64", [[1, 2], [], [3]]),
    (pa.array([[], [], []], pa.list_(pa.int16())), "int64", [[], [], []]),
    (pa.array([[0.5], [], [1, 2]], pa.large_list(pa.float64())), "float32", [[0.5], [], [1, 2]]),
    (pa.array([["a"], ["é", ""], []]), "string", [[b"a"], ["é".encode(), b""], []]),
]


def test_types(tmp_path):
    """Each type becomes a dtype, known or given, with the same values."""
    names = [f"column_{number}" for number in range(len(TYPES))]
    path = write(tmp_path, {name: of[0] for name, of in zip(names, TYPES, strict=True)})
    given = {
        name: inputs.Column(dtype, is_list=isinstance(expected[0], list))
        for name, (_, dtype, expected) in zip(names, TYPES, strict=True)
    }
    assert inputs.ParquetDataset([path]).columns == given
    for columns in (None, given):
        found = values(path, columns)
        for name, (array, _, expected) in zip(names, TYPES, strict=True):
            column = found[name]
            of_rows = column.to_list() if given[name].is_list else column.tolist()
            assert of_rows == expected, array.type


def test_whole_numbers_may_become_floats(tmp_path):
    """Labels and counts of whole numbers are float32 where that is asked for, in lists, too."""
    path = write(tmp_path, {"label": [1, 2**24 + 1], "seen": [[1], [2, 3]]})
    found = values(path, {"label": "float32", "seen": inputs.Column("float32", is_list=True)})
    np.testing.assert_array_equal(found["label"], np.array([1, 2**24 + 1], np.float32))
    assert found["seen"].values.dtype == np.float32


NULLS = {
    "whole": (pa.array([1, None, 3]), inputs.Column("int64", -7), [1, -7, 3]),
    "float": (pa.array([None, 0.5, None]), inputs.Column("float32", 2), [2, 0.5, 2]),
    "text": (
        pa.array([None, "a", None]),
        inputs.Column("string", "é"),
        ["é".encode(), b"a", "é".encode()],
    ),
    "none": (
        pa.array([None, None, None], pa.string()),
        inputs.Column("string", b""),
        [b"", b"", b""],
    ),
}


def test_nulls_are_the_default(tmp_path):
    """What is missing is the column's default."""
    path = write(tmp_path, {name: array for name, (array, _, _) in NULLS.items()})
    found = values(path, {name: column for name, (_, column, _) in NULLS.items()})
    assert {name: column.tolist() for name, column in found.items()} == {
        name: expected for name, (_, _, expected) in NULLS.items()
    }


@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([1, 2, None]), 2),
        (pa.array(["a", None, "b"]), 1),
        (pa.array([[1], [2], None]), 2),
        (pa.array([[1], [], [2, None]]), 2),
        (pa.array([["a", None], [None], []]), 0),
    ],
    ids=["number", "text", "list", "item", "text-item"],
)
def test_nulls_are_named(array, row, tmp_path):
    """A null without a default, or in a list, is named by file and row; other rows are good."""
    path = write(tmp_path, {"other": [1, 2, 3], "it": array})
    dataset = inputs.ParquetDataset([path])
    with pytest.raises(inputs.CorruptRecordError, match=rf"a\.parquet: record {row} .*'it' .*null"):
        dataset.source.check(row)
    found = values(path, skip_corrupt_records=2)["other"]
    assert row + 1 not in found.tolist()
    assert found.size >= 1


@pytest.mark.parametrize(
    ("array", "column", "message"),
    [
        pytest.param([decimal.Decimal(1)], None, "numbers, .*, got decimal128", id="decimal"),
        pytest.param([{"a": 1}], None, "'it' of .* must have numbers, .*, got struct", id="struct"),
        pytest.param([[[1]]], None, "must have numbers, .*, got list<", id="nested"),
        pytest.param([[1]], "int64", "must be list of int64, .*, got int64", id="list-as-dense"),
        pytest.param(
            *([1], inputs.Column("int64", is_list=True), "be int64, .*, got list of int64"),
            id="dense-as-list",
        ),
        pytest.param(
            [0.5], "int64", "must be float32, the type double of .*, got int64", id="float"
        ),
        pytest.param(["1"], "int64", "must be string, .*, got int64", id="text"),
        pytest.param([1], "string", "must be int64, .*, got string", id="number"),
    ],
)
def test_types_are_refused(array, column, message, tmp_path):
    """A type that is not supported, and a column of another type, are named with file and type."""
    path = write(tmp_path, {"it": array})
    with pytest.raises(ValueError, match=message):
        inputs.ParquetDataset([path], None if column is None else {"it": column})


def test_numbers_that_are_too_large(tmp_path):
    """A number that int64 cannot hold is an error that names file, row group and column."""
    dataset = inputs.ParquetDataset([write(tmp_path, {"it": pa.array([1, 2, 2**63], pa.uint64())})])
    dataset.source.check(1)
    with pytest.raises(
        inputs.CorruptRecordError, match=r"record 2 .*: row group 1 .*column 'it' must .* int64"
    ):
        dataset.source.check(2)


def test_files_that_are_no_parquet(tmp_path):
    """Other files, and files without rows, are errors."""
    path = tmp_path / "a.parquet"
    path.write_text("label\n1\n")
    with pytest.raises(ValueError, match=r"must be readable, got .*a\.parquet': .*magic"):
        inputs.ParquetDataset([path])
    with pytest.raises(ValueError, match="number of rows in paths must be at least 1, got 0"):
        inputs.ParquetDataset([write(tmp_path, {"it": pa.array([], pa.int64())})])
    with pytest.raises(ValueError, match="cache_bytes must be at least 1, got 0"):
        inputs.ParquetDataset([write(tmp_path, {"it": [1]})], cache_bytes=0)


def test_extra_is_named(tmp_path, monkeypatch):
    """Without `pyarrow` the error says what installs it."""
    path = write(tmp_path, {"it": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"pip install 'model_deploy\[parquet\]'"):
        inputs.ParquetDataset([path])


def test_files_elsewhere(tmp_path):
    """A file on another file system is read as one on this machine."""
    path = write(tmp_path, {"it": list(range(5)), "text": list("abcde")})
    with file_systems.open_file("ram://rows.parquet", "wb") as file:
        file.write(path.read_bytes())
    assert values("ram://rows.parquet")["it"].tolist() == [*range(5)]


def test_row_groups_are_read_once_while_they_are_kept(tmp_path):
    """An evaluation reads each row group once, even if little is kept; training in random order as
    well, if all are kept; and with blocks, in each window, if none is.
    """
    path = write(tmp_path, {"it": np.arange(400)}, group=20)
    dataset = inputs.ParquetDataset([path], cache_bytes=2 * 20 * 8)
    sessions.eval_values(dataset, preprocessing=None, batch_size=10, num_readers=1)
    assert dataset.source.groups.num_reads == 20
    dataset = inputs.ParquetDataset([path])
    options = {"preprocessing": None, "batch_size": 8, "num_epochs": 2}
    indices = sessions.train_indices(dataset, **options)
    assert sorted(np.ravel(indices)) == sorted([*range(400)] * 2)
    assert dataset.source.groups.num_reads == 20
    dataset = inputs.ParquetDataset([path], cache_bytes=1)
    options["num_epochs"] = 1
    assert sorted(np.ravel(sessions.train_indices(dataset, shuffle_block=20, **options))) == [
        *range(400)
    ]
    assert dataset.source.groups.num_reads == 20


def test_random_rows_take_blocks_where_not_all_are_kept(tmp_path):
    """Single rows in random order, each of which would cost a row group, are refused; the file's
    order and blocks are not.
    """
    dataset = inputs.ParquetDataset([write(tmp_path, {"it": np.arange(100)})], cache_bytes=799)
    with pytest.raises(
        ValueError, match=r"shuffle_block must be given .* 800 bytes, .*=799, .*None"
    ):
        inputs.train_batches(dataset, batch_size=4)
    for options in ({"shuffle": False}, {"shuffle_block": 2}):
        batches = inputs.train_batches(dataset, batch_size=4, **options)
        assert batches.held.table_bytes >= 799
    assert inputs.train_batches(
        inputs.ParquetDataset([write(tmp_path, {"it": np.arange(100)})], cache_bytes=800),
        batch_size=4,
    )


def _rows():
    """A row group of 100 bytes."""
    return Rows({}, pa.table({}), {}, {"it": np.zeros([100], bool)})


def test_latest_row_groups_are_kept():
    """What was not wanted for longest goes first; the last one stays, however large."""
    read = []
    groups = RowGroups(lambda number: read.append(number) or _rows(), 250)
    for number in (1, 2, 1, 3, 1, 2):
        assert groups[number].num_bytes == 100
    assert read == [1, 2, 3, 2]
    groups = RowGroups(lambda number: read.append(number) or _rows(), 1)
    assert [groups[7], groups[7]]
    assert read == [1, 2, 3, 2, 7]


def test_row_group_is_read_by_one_thread():
    """Who wants a row group that is being read waits for it; after an error it is read again."""
    started, go_on = threading.Event(), threading.Event()

    def read(number):
        started.set()
        assert go_on.wait(30)
        if number < 0:
            raise ValueError(f"row group must be readable, got {number}")
        return _rows()

    groups = RowGroups(read, 1000)
    found = []
    threads = [threading.Thread(target=lambda: found.append(groups[5])) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert started.wait(30)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert groups.num_reads == 1
    assert len({id(each) for each in found}) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="must be readable, got -1"):
            groups[-1]
    assert groups.num_reads == 3
