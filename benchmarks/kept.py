"""Measurements that are kept in a file of JSON, one in a line, with their date and machine."""

import datetime
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.machine import describe_machine
from model_deploy.commands import replaced_file


def read_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """What was measured; nothing if there is no file yet."""
    return json.loads(path.read_text()) if path.exists() else []


def write_rows(rows: Iterable[Mapping[str, Any]], path: pathlib.Path) -> None:
    """Replaces the file by one with these rows; its folder is made if need be."""
    path.parent.mkdir(exist_ok=True)
    with replaced_file(path) as file:
        file.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def stamped(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the date of now, and this machine."""
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return {**row, "date": date, "machine": describe_machine()}
