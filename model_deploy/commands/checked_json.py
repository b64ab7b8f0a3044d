"""Small JSON files that know their checksum: a flipped bit is never taken for another number."""

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

from model_deploy import file_systems
from model_deploy.commands.plain_values import parse_json
from model_deploy.commands.replacing import replaced_file

_SUM = "crc32"


def write_checked(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Writes a JSON object, with the checksum of its values as `crc32`, in place of a file.

    Args:
      path: the file, on any file system.
      values: names and plain values; no NaN and no infinity.

    Raises:
      OSError: if it cannot be written.
    """
    with replaced_file(path) as file:
        json.dump({**values, _SUM: _sum(values)}, file, allow_nan=False)
        file.write("\n")


def read_checked(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads what `write_checked` wrote; a file of an earlier version, without checksum, too.

    Returns:
      The values, without the checksum.

    Raises:
      ValueError: naming the file, if it is damaged.
      OSError: if it cannot be read.
    """
    try:
        found = parse_json(file_systems.read_text(path))
    except ValueError as error:  # what is no UTF-8 included
        raise ValueError(f"{os.fspath(path)} must be JSON, got {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{os.fspath(path)} must be a JSON object, got {found!r}")
    for name in found:
        if _differs_in_one_character(name, _SUM):
            raise ValueError(f"{os.fspath(path)} must have its {_SUM}, got {name!r}")
    noted = found.pop(_SUM, None)
    if noted is not None and noted != _sum(found):
        raise ValueError(
            f"{os.fspath(path)} must have values whose crc32 is {noted!r}, got {_sum(found)!r}"
        )
    return found


def _sum(values: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(values, sort_keys=True).encode()):08x}"


def _differs_in_one_character(name: str, other: str) -> bool:
    """Whether a flipped bit may have made one name of another."""
    return len(name) == len(other) and sum(map(str.__ne__, name, other)) == 1
