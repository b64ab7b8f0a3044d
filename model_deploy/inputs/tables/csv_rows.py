"""Rows of a CSV file with random access: where each of them is, and their bytes.

A row is a line, or several where a quoted field holds line breaks (RFC 4180).  Empty lines are no
rows.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from model_deploy import file_systems
from model_deploy.inputs.files import indexes

# Indexes have the starts of all rows, and then their lengths; quotes make another index.
_MAGIC = {True: b"csvquote", False: b"csvlines"}
_BLOCK = 2**24
# Also bounds what a quote that nothing closes may swallow.
_MAX_ROW = 2**20
_MAX_REQUEST = 2**24
_NEWLINE, _RETURN, _QUOTE = b"\n"[0], b"\r"[0], b'"'[0]
_GZIP, _BOM = b"\x1f\x8b", b"\xef\xbb\xbf"


@dataclasses.dataclass(frozen=True)
class RowFile:
    """The positions of the rows in a file, the header among them.

    Attributes:
      path: the file.
      begins: start of each row in the file, int64 [rows].
      lengths: number of bytes of each row, without what ends its line, int64 [rows].
    """

    path: str
    begins: np.ndarray
    lengths: np.ndarray

    def read(self, rows: np.ndarray) -> Iterator[bytes]:
        """Reads rows, neighbours by one request.

        Args:
          rows: int64 [n], numbers in this file in ascending order.

        Raises:
          OSError: if the file cannot be read, or has become shorter.
        """
        if not len(rows):
            return
        begins, ends = self.begins[rows], self.begins[rows] + self.lengths[rows]
        # A run of neighbours ends where rows are left out, or where the request would be too long.
        apart = (np.diff(rows) > 1) | (np.diff(begins // _MAX_REQUEST) > 0)
        runs = np.flatnonzero(np.concatenate([[True], apart, [True]])).tolist()
        places = list(zip(begins.tolist(), ends.tolist(), strict=True))  # ints are faster in Python
        with (
            file_systems.as_os_errors(),
            file_systems.open_file(self.path, "rb") as file,
        ):
            read = _reader(file, self.path)
            for first, after in itertools.pairwise(runs):
                start = places[first][0]
                content = read(start, places[after - 1][1] - start)
                for begin, end in places[first:after]:
                    if end - start > len(content):
                        raise OSError(f"must have {end} bytes or more, but has become shorter")
                    yield content[begin - start : end - start]

    def line(self, row: int) -> int:
        """Returns the number of the line, from 1, in which a row begins."""
        return _line_at(self.path, int(self.begins[row]))


def _reader(file: Any, path: str) -> Callable[[int, int], bytes]:
    """Returns a function that reads so many bytes from a place of an open file."""
    if file_systems.is_local(path):
        # Python's files read whole blocks around a place.
        return lambda start, size: os.pread(file.fileno(), size, start)

    def read(start: int, size: int) -> bytes:
        file.seek(start)
        content: bytes = file.read(size)
        return content

    return read


def find_rows(path: str, quoting: bool) -> RowFile:
    """Finds the rows of a file, by its index if that is valid; keeps it if the file is not small.

    Args:
      path: the file.
      quoting: whether double quotes may enclose fields, and so line breaks.

    Raises:
      ValueError: if the file cannot be read or is compressed, for a row of more than 1 MiB, and a
        quote that is not closed.
    """
    try:
        facts = file_systems.facts_of(path)
        index = indexes.read(path, facts, _MAGIC[quoting])
        if index is None:
            index = np.concatenate(_find(path, quoting))
            if indexes.is_kept(facts):
                indexes.write(path, facts, _MAGIC[quoting], index)
    except OSError as error:
        raise ValueError(f"file of a table must be readable, got {path!r}: {error}") from error
    begins, lengths = np.split(index, 2)
    return RowFile(path, begins, lengths)


def _find(path: str, quoting: bool) -> tuple[np.ndarray, np.ndarray]:
    """Returns the starts and the lengths of all rows, int64 [rows] each."""
    before, open_quotes, last = 0, 0, 0
    start = 0
    ends: list[Any] = []
    returns: list[Any] = []
    for block in _blocks(path):
        if before == 0:
            if block.startswith(_GZIP):
                raise ValueError(
                    f"{path}: must not be compressed, as its rows are read in any order"
                )
            start = len(_BOM) if block.startswith(_BOM) else 0
        data = np.frombuffer(block, np.uint8)
        newlines = np.flatnonzero(data == _NEWLINE)
        if quoting:
            quotes = np.flatnonzero(data == _QUOTE)
            newlines = newlines[(open_quotes + np.searchsorted(quotes, newlines)) % 2 == 0]
            open_quotes += len(quotes)
        ends.append(before + newlines)
        # The byte before each newline, the first of which may be in the block before.
        returns.append(np.concatenate([[last], data])[newlines] == _RETURN)
        before, last = before + len(data), data[-1]
    all_ends = np.concatenate([*ends, [before]]).astype(np.int64)
    begins = np.concatenate([[start], all_ends[:-1] + 1])
    lengths = all_ends - begins - np.concatenate([*returns, [last == _RETURN]])
    _check_lengths(path, begins, lengths, open_quotes)
    kept = lengths > 0
    return begins[kept], lengths[kept]


def _check_lengths(path: str, begins: np.ndarray, lengths: np.ndarray, quotes: int) -> None:
    if quotes % 2:
        line = _line_at(path, int(begins[-1]))
        raise ValueError(f"{path}: line {line}: a quote must be closed, got none up to the end")
    longest = int(np.argmax(lengths))
    if lengths[longest] > _MAX_ROW:
        line = _line_at(path, int(begins[longest]))
        raise ValueError(
            f"{path}: line {line}: a row must have at most {_MAX_ROW:,} bytes, as more come of a "
            f"quote that is not closed, got {lengths[longest]:,}"
        )


def _line_at(path: str, place: int) -> int:
    """Returns the number of the line, from 1, with a byte of a file."""
    line = 1
    for block in _blocks(path):
        line += block[: max(0, place)].count(b"\n")
        place -= len(block)
    return line


def _blocks(path: str) -> Iterator[bytes]:
    with file_systems.as_os_errors(), file_systems.open_file(path, "rb") as file:
        while block := file.read(_BLOCK):
            yield block
