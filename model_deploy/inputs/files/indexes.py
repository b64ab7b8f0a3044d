"""Indexes: where the examples of a file are, found once, kept in a file beside it or in the cache.

An index is valid only if it is complete and the size and time of the file with the examples have
not changed since.
"""

import concurrent.futures
import contextlib
import os
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from tqdm import tqdm

from model_deploy import file_systems
from model_deploy.inputs.files import kept_files

_File = TypeVar("_File")

# Magic, size and time of the file, how many numbers follow, their checksum.
_HEADER = struct.Struct("<8sQqQI")
_SMALL_BYTES = 2**16  # going through a file of this size is as fast as reading an index
_THREADS = 32  # that wait for files on other machines
_SHOWN_AFTER_SECS = 2


def read(path: str, facts: file_systems.FileFacts, magic: bytes) -> np.ndarray | None:
    """Returns the numbers of a valid index, int64 [n]; else None.

    Args:
      path: the file with the examples.
      facts: present size and time of that file.
      magic: 8 bytes that say what the numbers mean.
    """
    for place in _places(path):
        with contextlib.suppress(OSError):
            content = file_systems.read_bytes(place)
            if not _is_whole(content):
                print(f"{place} is damaged: examples are looked for again", file=sys.stderr)
                continue
            numbers = _numbers_in(content, facts, magic)
            if numbers is not None:
                return numbers
    return None


def write(path: str, facts: file_systems.FileFacts, magic: bytes, numbers: np.ndarray) -> None:
    """Keeps an index, where that is possible.

    Args:
      path: the file with the examples.
      facts: size and time of that file before its examples were looked for.
      magic: 8 bytes that say what the numbers mean.
      numbers: int64 [n].
    """
    data = numbers.astype("<i8").tobytes()
    header = _HEADER.pack(magic, *facts, len(numbers), zlib.crc32(data))
    kept_files.write_first(_places(path), lambda file: file.write(header + data))


def is_kept(facts: file_systems.FileFacts) -> bool:
    """Whether a file is so large that its index is worth a file."""
    return facts.size > _SMALL_BYTES


def find_all(
    paths: Sequence[str], find: Callable[[str], _File], count: Callable[[_File], int]
) -> list[_File]:
    """Indexes several files in parallel; shows progress if it takes long.

    Args:
      paths: the files.
      find: indexes a file.
      count: returns how many examples an indexed file has.
    """
    found: list[_File] = []
    examples = 0
    with (
        concurrent.futures.ThreadPoolExecutor(_THREADS) as pool,
        tqdm(total=len(paths), unit="file", desc="index", delay=_SHOWN_AFTER_SECS) as bar,
    ):
        for file in pool.map(find, paths):
            found.append(file)
            examples += count(file)
            bar.set_postfix_str(f"{examples:,} records", refresh=False)
            bar.update()
    return found


def _is_whole(content: bytes) -> bool:
    """Whether the content of an index has its length and its checksum."""
    if len(content) < _HEADER.size:
        return False
    *_, count, checksum = _HEADER.unpack_from(content)
    data = content[_HEADER.size :]
    return len(data) == 8 * count and zlib.crc32(data) == checksum


def _numbers_in(content: bytes, facts: file_systems.FileFacts, magic: bytes) -> np.ndarray | None:
    """Parses the content of a whole index; None if it is another one or the file has changed."""
    found, size, modified, *_ = _HEADER.unpack_from(content)
    if found != magic or (size, modified) != facts:
        return None
    return np.frombuffer(content[_HEADER.size :], "<i8")


def _places(path: str) -> list[str]:
    """Returns the possible paths of a file's index: beside it, or in the cache."""
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.index")
    return [beside, kept_files.in_user_cache("records", path, ".index")]
