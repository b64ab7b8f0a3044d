"""Indexes of TFRecord files: the positions of records are found once, and kept; see `indexes`.

The lengths of all records of a file give their positions.  Finding them takes a pass over the whole
file.
"""

import contextlib
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from model_deploy import file_systems
from model_deploy.inputs.files import indexes
from model_deploy.inputs.files.checksums import masked_crc32c
from model_deploy.inputs.files.corrupt_records import CorruptRecordError, Tolerance
from model_deploy.inputs.files.records import FOOTER, HEADER, RecordFile

_MAGIC = b"records1"  # an index of the lengths of records


def index_files(
    paths: Sequence[str], tolerance: Tolerance, *, keep: bool | None = None
) -> list[RecordFile]:
    """Finds the records of several files in parallel; shows progress if it takes long.

    Args:
      paths: the files.
      tolerance: as for `index_file`.
      keep: as for `index_file`.

    Raises:
      CorruptRecordError: as `index_file`.
      ValueError: as `index_file`.
    """
    return indexes.find_all(
        paths,
        lambda path: index_file(path, tolerance, keep=keep),
        lambda file: len(file.offsets),
    )


def index_file(path: str, tolerance: Tolerance, *, keep: bool | None = None) -> RecordFile:
    """Finds the records of a TFRecord file, by its index if that is valid.

    No records can be found after a truncated or corrupt header: if it is tolerated, only the
    records before it are used.

    Args:
      path: the file.
      tolerance: how many corrupt records may be skipped.
      keep: whether to write a missing index; by default if the file is not small.

    Raises:
      CorruptRecordError: for a corrupt header that is not tolerated.
      ValueError: if the file cannot be read, or is compressed.
    """
    try:
        facts = file_systems.facts_of(path)
        lengths = read_index(path, facts)
        if lengths is not None:
            return _record_file(path, lengths)
        lengths, problem = _find_records(path, facts.size)
    except OSError as error:
        raise ValueError(f"file of a dataset must be readable, got {path!r}: {error}") from error
    if problem:
        tolerance.skip(CorruptRecordError(path, len(lengths), problem))
    elif keep or (keep is None and indexes.is_kept(facts)):
        indexes.write(path, facts, _MAGIC, lengths)
    return _record_file(path, lengths)


def _record_file(path: str, lengths: np.ndarray) -> RecordFile:
    around = HEADER.size + FOOTER.size
    return RecordFile(path, np.cumsum(lengths + around) - lengths - FOOTER.size, lengths)


def read_index(path: str, facts: file_systems.FileFacts) -> np.ndarray | None:
    """Returns the lengths of a file's records, int64 [records], from a valid index; else None.

    Args:
      path: the file with the records.
      facts: present size and time of that file.
    """
    return indexes.read(path, facts, _MAGIC)


def _find_records(path: str, size: int) -> tuple[np.ndarray, str | None]:
    """Returns the lengths of the records, int64 [records], and the problem after them or None.

    Raises:
      ValueError: if the file is compressed.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(file_systems.as_os_errors())
        file = stack.enter_context(file_systems.open_file(path, "rb"))
        if size == 0:  # an empty file cannot be mapped
            return np.zeros([0], np.int64), None
        if file_systems.is_local(path):
            data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            data = _Slices(file)
        lengths, problem = _walk(data, size)
        if problem and not lengths and is_compressed(data[0:2]):
            raise ValueError(
                f"{path}: must not be compressed, as its records are read in any order; "
                "`python -m model_deploy.inputs.convert --uncompress` writes such files"
            )
    return np.array(lengths, np.int64), problem


class _Slices:
    """Allows slicing a file that is not on this machine, as if it were bytes."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getitem__(self, part: slice) -> bytes:
        self._file.seek(part.start)
        content: bytes = self._file.read(part.stop - part.start)
        return content


def _walk(data: Any, size: int) -> tuple[list[int], str | None]:
    """Reads the lengths of all records; stops at a corrupt header and says what is wrong."""
    lengths: list[int] = []
    offset = 0
    while offset < size:
        if offset + HEADER.size > size:
            return lengths, f"its header is truncated at byte {size}"
        header = data[offset : offset + HEADER.size]
        length, checksum = HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum:
            return lengths, f"the length at byte {offset} does not match its checksum"
        offset += HEADER.size + length + FOOTER.size
        if offset > size:
            return lengths, f"must end at byte {offset}, but the file is truncated at {size}"
        lengths.append(length)
    return lengths, None


def is_compressed(start: bytes) -> bool:
    """Whether a file is compressed by GZIP or ZLIB, from its first two bytes."""
    return start == b"\x1f\x8b" or (start[:1] == b"x" and int.from_bytes(start, "big") % 31 == 0)
