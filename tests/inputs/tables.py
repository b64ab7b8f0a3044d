"""Makes small tables of clicks, the same rows as CSV and as Parquet."""

import csv

import pyarrow as pa
import pyarrow.parquet as pq

from model_deploy import inputs

COLUMNS = {
    "label": "float32",
    "price": inputs.Column("float32", default=-1),
    "user": "string",
    "seen": inputs.Column("int64", is_list=True),
}
FORMATS = ["csv", "parquet"]


def rows(count, first=0):
    """Rows whose values follow from their number; every fifth price is missing."""
    return [
        {
            "label": number % 2,
            "price": None if number % 5 == 0 else number / 4,
            "user": f"Zoë, {number}",
            "seen": list(range(number, number + number % 4)),
        }
        for number in range(first, first + count)
    ]


def write_csv(path, table):
    """A file with a header, its lists separated by `|`."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        for row in table:
            writer.writerow(row | {"seen": "|".join(map(str, row["seen"]))})


def write_parquet(path, table):
    """A file with row groups of four rows."""
    schema = {"label": pa.int8(), "price": pa.float64(), "user": pa.string()}
    schema["seen"] = pa.list_(pa.int32())
    pq.write_table(pa.Table.from_pylist(table, pa.schema(schema)), path, row_group_size=4)


def write(folder, form):
    """Two files with 23 rows; returns their paths."""
    folder.mkdir(exist_ok=True)
    table = rows(23)
    paths = [folder / f"a.{form}", folder / f"b.{form}"]
    for path, part in zip(paths, (table[:9], table[9:]), strict=True):
        (write_csv if form == "csv" else write_parquet)(path, part)
    return paths


def read(paths, columns=None, **options):
    """The dataset of some files of one format."""
    form = inputs.CsvDataset if str(paths[0]).endswith("csv") else inputs.ParquetDataset
    return form(paths, COLUMNS if columns is None else columns, **options)


def assert_rows(batch, table):
    """A batch has the values of the rows that it numbers."""
    expected = [table[index] for index in batch["index"]]
    assert batch["label"].tolist() == [row["label"] for row in expected]
    assert batch["price"].tolist() == [
        -1 if row["price"] is None else row["price"] for row in expected
    ]
    assert [user.decode() for user in batch["user"]] == [row["user"] for row in expected]
    assert batch["seen"].to_list() == [row["seen"] for row in expected]
