"""Files on any file system that TensorFlow supports: local, `gs://`, `hdfs://`, `ram://`, `s3://`.

A path with `://` goes to `tf.io.gfile`, all other paths to Python's own functions.  Either way a
file that cannot be read or written raises `OSError`, and a missing file `FileNotFoundError`.

Object stores copy a file to move it, and move folders file by file: `replace` is then not atomic.
A reader may for a moment see neither the old nor the new file, but never a partial one.
"""

import contextlib
import fnmatch
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

Path = str | os.PathLike[str]


class FileFacts(NamedTuple):
    """Size and time of a file; they differ if the file has been changed.

    Attributes:
      size: in bytes.
      modified_nsec: time of the last change, in nanoseconds.
    """

    size: int
    modified_nsec: int


def is_local(path: Path) -> bool:
    """Whether a path is one that Python itself can open.

    >>> is_local("data/records"), is_local("gs://bucket/records")
    (True, False)
    """
    return "://" not in os.fspath(path)


def open_file(path: Path, mode: str = "r") -> IO[Any]:
    """Opens a file; text is UTF-8.

    Args:
      path: the file.
      mode: "r", "w", "a" or one of these with "b".

    Raises:
      OSError: if it cannot be opened.  Reads and writes of a file that is not local raise
        errors of TensorFlow: wrap them in `as_os_errors`.
    """
    if is_local(path):
        return open(path, mode, encoding=None if "b" in mode else "utf-8")
    file = _gfile().GFile(os.fspath(path), mode)
    with as_os_errors():
        if "r" in mode:
            file.size()  # opens the file, or raises
    return file


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file.

    Raises:
      OSError: if it cannot be read.
    """
    with _reading(path) as file:
        return file.read()


def lines_in(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, with their ends, one at a time.

    Raises:
      OSError: if it cannot be read.
    """
    with _reading(path) as file:
        yield from file


def read_text(path: Path) -> str:
    """Returns the content of a UTF-8 text file.

    Raises:
      OSError: if it cannot be read.
      UnicodeDecodeError: if it is not UTF-8.
    """
    return read_bytes(path).decode("utf-8")


def exists(path: Path) -> bool:
    """Whether there is a file or folder of this name."""
    return os.path.exists(path) if is_local(path) else _gfile().exists(os.fspath(path))


def is_folder(path: Path) -> bool:
    """Whether there is a folder of this name."""
    return os.path.isdir(path) if is_local(path) else _gfile().isdir(os.fspath(path))


def is_file(path: Path) -> bool:
    """Whether there is a file of this name."""
    if is_local(path):
        return os.path.isfile(path)
    return _gfile().exists(os.fspath(path)) and not _gfile().isdir(os.fspath(path))


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    """Returns the sorted names of files and folders in a folder; [] where there is no folder.

    Args:
      folder: where to look.
      pattern: which names to return, as `fnmatch` takes it.
    """
    try:
        if is_local(folder):
            names = os.listdir(folder)
        else:
            with as_os_errors():
                names = [each.rstrip("/") for each in _gfile().listdir(os.fspath(folder))]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(each for each in names if fnmatch.fnmatchcase(each, pattern))


def paths_starting_with(path: Path) -> list[str]:
    """Returns the files and folders whose paths start with `path`."""
    # `glob` would keep a compiled pattern for each path, such as those of all checkpoints of a run.
    folder, start = os.path.split(os.fspath(path))
    names = names_in(folder or os.curdir)
    return [os.path.join(folder, each) for each in names if each.startswith(start)]


def facts_of(path: Path) -> FileFacts:
    """Returns the size and the modification time of a file.

    Raises:
      OSError: if there is no such file.
    """
    if is_local(path):
        status = os.stat(path)
        return FileFacts(status.st_size, status.st_mtime_ns)
    with as_os_errors():
        status = _gfile().stat(os.fspath(path))
    return FileFacts(int(status.length), int(status.mtime_nsec))


def make_folders(path: Path) -> None:
    """Makes a folder and its parents, where missing.

    Raises:
      OSError: if it cannot be made.
    """
    if is_local(path):
        os.makedirs(path, exist_ok=True)
    else:
        with as_os_errors():
            _gfile().makedirs(os.fspath(path))


def replace(old: Path, new: Path) -> None:
    """Renames a file or folder, replacing a file that has the new name.

    Raises:
      OSError: if renaming fails.
    """
    if is_local(new):
        os.replace(old, new)
    else:
        with as_os_errors():
            _gfile().rename(os.fspath(old), os.fspath(new), overwrite=True)


def upload(source: str, target: Path, last: str) -> None:
    """Copies a folder of this machine, or a file, to another file system.

    Args:
      source: the folder or file.
      target: the path of the copy.
      last: the name of a file in the folder that is copied last: readers take a folder without it
        as incomplete, which stands in for moving the folder in one step.

    Raises:
      OSError: if it cannot be written.
    """
    names = [
        os.path.relpath(os.path.join(folder, name), source)
        for folder, _, files in os.walk(source)
        for name in files
    ]
    for name in sorted(names, key=lambda name: (name == last, name)):
        path = os.path.join(os.fspath(target), name)
        make_folders(os.path.dirname(path))
        _upload_file(os.path.join(source, name), path)
    if not os.path.isdir(source):
        make_folders(os.path.dirname(os.fspath(target)))
        _upload_file(source, os.fspath(target))


def _upload_file(source: str, target: str) -> None:
    part = f"{target}.part"
    with as_os_errors():
        _gfile().copy(source, part, overwrite=True)
    replace(part, target)


def remove(path: Path) -> None:
    """Removes a file or a folder with its content; a missing one is ignored."""
    if is_local(path):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
    elif exists(path):
        with as_os_errors():
            _gfile().rmtree(os.fspath(path)) if is_folder(path) else _gfile().remove(
                os.fspath(path)
            )


@contextlib.contextmanager
def as_os_errors() -> Iterator[None]:
    """Turns errors of TensorFlow's file systems in a `with` block into Python's.

    Raises:
      OSError: in place of an error of TensorFlow.
    """
    import tensorflow as tf  # noqa: PLC0415 - see `_gfile`

    try:
        yield
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(error.message) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[IO[bytes]]:
    errors = contextlib.nullcontext() if is_local(path) else as_os_errors()
    with errors, open_file(path, "rb") as file:
        yield file


def _gfile() -> Any:
    # Commands read their options before they import TensorFlow, which takes seconds.
    import tensorflow as tf  # noqa: PLC0415

    return tf.io.gfile
