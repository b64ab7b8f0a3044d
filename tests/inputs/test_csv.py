"""CSV files: their rows are found as Python's reader finds them, and their errors have a line."""

import csv
import gzip
import os
import random

import numpy as np
import pytest

from model_deploy import inputs
from model_deploy.inputs.tables import csv_rows
from tests.inputs import sessions

pytestmark = pytest.mark.one_mode

LIST = inputs.Column("int64", is_list=True)


def write(folder, text, name="a.csv"):
    """A file with a text, str or bytes; returns its path."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def values(path, columns, **options):
    """The columns of a file, of all rows at once."""
    dataset = inputs.CsvDataset([path], columns, **options)
    [batch] = sessions.eval_values(dataset, preprocessing=None, batch_size=100)
    return {
        name: each.tolist() if hasattr(each, "tolist") else each for name, each in batch.items()
    }


@pytest.mark.parametrize("block", [1, 7, 2**24])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_are_those_of_pythons_reader(block, end, tmp_path, monkeypatch):
    """Rows of random fields with quotes, delimiters and line breaks come as they were written,
    however many bytes of the file are gone through at a time, in any order and selection.
    """
    monkeypatch.setattr(csv_rows, "_BLOCK", block)
    draw = random.Random(f"{block}{end}")
    table = [
        ["".join(draw.choices('ab",\n\ré', k=draw.randrange(6))) for _ in range(3)]
        for _ in range(40)
    ]
    path = tmp_path / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(table)
    found = csv_rows.find_rows(str(path), quoting=True)
    for rows in (range(40), [3], [0, 1, 2, 17, 18, 39]):
        texts = [text.decode() for text in found.read(np.array(rows))]
        assert [next(csv.reader([text], strict=True)) for text in texts] == [
            table[row] for row in rows
        ]


@pytest.mark.parametrize(
    ("text", "options", "label", "user"),
    [
        pytest.param("label,user\n1,ann\n0,bob\n", {}, [1, 0], ["ann", "bob"], id="header"),
        pytest.param("user,x,label\nann,7,1\n", {}, [1], ["ann"], id="other-columns"),
        pytest.param(
            "1,ann\n0,bob", {"names": ["label", "user"]}, [1, 0], ["ann", "bob"], id="names"
        ),
        pytest.param("label,user\r\n1,ann\r\n", {}, [1], ["ann"], id="crlf"),
        pytest.param("\ufefflabel,user\n1,ann\n", {}, [1], ["ann"], id="bom"),
        pytest.param(
            "label,user\n\n1,ann\n\n\n0,bob\n\n", {}, [1, 0], ["ann", "bob"], id="empty-lines"
        ),
        pytest.param('label,user\n1,"a, ""b"""\n', {}, [1], ['a, "b"'], id="quotes"),
        pytest.param('label,user\n1,"a\nb"\n0,c\n', {}, [1, 0], ["a\nb", "c"], id="line-break"),
        pytest.param('"label","us,er"\n1,a\n', {}, [1], None, id="quoted-header"),
        pytest.param(
            'label\tuser\n1\ta "b\n',
            {"delimiter": "\t", "quoting": False},
            [1],
            ['a "b'],
            id="tabs",
        ),
        pytest.param("label,user\n1,日本\n", {}, [1], ["日本"], id="utf-8"),
        pytest.param("label,user\n1,?\n?,bob\n", {"na_value": "?"}, [1, -1], ["", "bob"], id="na"),
    ],
)
def test_forms_of_csv(text, options, label, user, tmp_path):
    """Each form of a file gives the values that stand in it; missing ones are the defaults."""
    columns = {"label": inputs.Column("int64", default=-1)}
    if user:
        columns["user"] = inputs.Column("string", default="")
    found = values(write(tmp_path, text), columns, **options)
    assert found["label"] == label
    assert not user or [each.decode() for each in found["user"]] == user


@pytest.mark.parametrize(
    ("field", "column", "separator", "expected"),
    [
        ("1|22|3", LIST, "|", [1, 22, 3]),
        ("", LIST, "|", []),
        ("5", LIST, "|", [5]),
        ("-1 2", LIST, " ", [-1, 2]),
        ("0.5|2", inputs.Column("float32", is_list=True), "|", [0.5, 2]),
        ("a||é", inputs.Column("string", is_list=True), "|", [b"a", b"", "é".encode()]),
    ],
)
def test_lists(field, column, separator, expected, tmp_path):
    """A field is a list of what its separator divides, an empty one the empty list."""
    path = write(tmp_path, f"label,seen\n1,{field}\n0,\n1,{field}\n")
    found = values(path, {"seen": column}, list_separator=separator)
    assert found["seen"].to_list() == [expected, [], expected]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        pytest.param("1,2", "must have 3 fields, got 2", id="few"),
        pytest.param("1,2,3,4", "must have 3 fields, got 4", id="many"),
        pytest.param("x,2,3", "column 'label' is not a valid int64: x", id="number"),
        pytest.param("1,x,3", "column 'price' is not a valid float: x", id="float"),
        pytest.param(
            "1,,3", "column 'price' must have a value or a default, got none", id="missing"
        ),
        pytest.param("1,2,3|x", "column 'seen' has what is not a valid int64: x", id="item"),
        pytest.param("1,2,3||4", "column 'seen' has what is not a valid int64: $", id="no-item"),
        pytest.param('1,2,"a"b', "Quote inside a string has to be escaped", id="quote"),
    ],
)
def test_bad_rows_have_a_reason(row, reason, tmp_path):
    """What is wrong with a row is said with its file, number and line."""
    path = write(tmp_path, f'label,price,seen\n"1",2,3\n\n1,2,"3"\n{row}\n1,2,3\n')
    columns = {"label": "int64", "price": "float32", "seen": LIST}
    dataset = inputs.CsvDataset([path], columns)
    for good in (0, 1, 3):
        dataset.source.check(good)
    with pytest.raises(
        inputs.CorruptRecordError, match=rf"a\.csv: record 2 .*: line 5: .*{reason}"
    ) as error:
        dataset.source.check(2)
    assert error.value.record == 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        pytest.param("", {}, "file must have a header without names, got the empty", id="empty"),
        pytest.param("label\n", {}, "rows in paths must be at least 1, got 0", id="no-rows"),
        pytest.param(
            gzip.compress(b"label\n1\n"), {}, r"a\.csv: must not be compressed", id="gzip"
        ),
        pytest.param(b"label,\xff\n1,2\n", {}, r"a\.csv: the header must be UTF-8", id="bytes"),
        pytest.param("label,label\n1,2\n", {}, "must be different, got 'label' twice", id="twice"),
        pytest.param('label\n1\n"2\n3\n', {}, "line 3: a quote must be closed", id="open-quote"),
        pytest.param(
            f'label\n1\n"{"2" * 2**20}"\n',
            {},
            "line 3: a row must have at most 1,048,576",
            id="long",
        ),
        pytest.param("label\n1\n", {"delimiter": "::"}, "be one character .*, got '::'", id="text"),
        pytest.param("label\n1\n", {"delimiter": '"'}, "no quote, got '\"'", id="delimiter"),
        pytest.param(
            "label\n1\n", {"list_separator": ","}, "without the delimiter, got ','", id="list"
        ),
        pytest.param(
            "label\n1\n", {"list_separator": ""}, "without the delimiter, got ''", id="none"
        ),
        pytest.param(
            "label\n1\n", {"quoting": 1}, "quoting must be True or False, got 1", id="flag"
        ),
        pytest.param("1\n", {"names": ["click"]}, "among names, click, got 'label'", id="names"),
        pytest.param(
            "label\n1\n", {"skip_corrupt_records": -1}, "at least 0, got -1", id="negative"
        ),
    ],
)
def test_csv_rejects(text, options, message, tmp_path):
    """Files and settings that cannot be read are errors that say why."""
    with pytest.raises(ValueError, match=message):
        inputs.CsvDataset([write(tmp_path, text)], {"label": "int64"}, **options)


def test_headers_must_agree(tmp_path):
    """Files with other columns, or the same ones in another order, are named."""
    paths = [
        write(tmp_path, "label,user\n1,a\n"),
        write(tmp_path, "user,label\nb,0\n", "b.csv"),
    ]
    with pytest.raises(ValueError, match=r"must have the header .*, got user, label in .*b\.csv"):
        inputs.CsvDataset(paths, {"label": "int64"})


def test_index_is_kept(tmp_path, monkeypatch):
    """Rows of a larger file are found once; a file that has changed is gone through again, and one
    that has become shorter since is named.
    """
    path = write(tmp_path, "label\n" + "12345678\n" * 10_000)
    dataset = inputs.CsvDataset([path], {"label": "int64"})
    assert dataset.num_examples == 10_000
    assert (tmp_path / ".a.csv.index").exists()
    with monkeypatch.context() as patched:
        patched.setattr(csv_rows, "_find", None)
        assert inputs.CsvDataset([path], {"label": "int64"}).num_examples == 10_000
        with pytest.raises(TypeError):  # without quotes other rows may be found
            inputs.CsvDataset([path], {"label": "int64"}, quoting=False)
    os.truncate(path, 6 + 9 * 9_000)
    with pytest.raises(inputs.CorruptRecordError, match=r"a\.csv: record 9999 .* become shorter"):
        dataset.source.check(9_999)
    assert inputs.CsvDataset([path], {"label": "int64"}).num_examples == 9_000


def test_files_elsewhere(tmp_path):
    """A file on another file system is read as one on this machine."""
    del tmp_path
    csv_rows.file_systems.make_folders("ram://tables")
    with csv_rows.file_systems.open_file("ram://tables/a.csv", "w") as file:
        file.write("label,user\n1,ann\n0,bob\n")
    found = values("ram://tables/a.csv", {"user": "string"})
    assert found["user"] == [b"ann", b"bob"]
