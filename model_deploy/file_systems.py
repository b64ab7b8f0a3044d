"""Files here or on any file system that TensorFlow has: `gs://`, `hdfs://`, `ram://`, `s3://`.

A path with `://` in it goes to `tf.io.gfile`, every other one to Python's own functions.  Either
way a file that cannot be read or written is an `OSError`, and one that is not there a
`FileNotFoundError`.

Object stores move a file by copying it, and cannot move folders as a whole: `replace` is then not
atomic, and a reader may see neither the old file nor the new one for a moment, but no half of one.
"""

import contextlib
import fnmatch
import glob
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

Path = str | os.PathLike[str]


class FileFacts(NamedTuple):
    """What tells a file from one that has been changed since.

    Attributes:
      size: in bytes.
      modified_nsec: when it was changed last, in nanoseconds.
    """

    size: int
    modified_nsec: int


def is_local(path: Path) -> bool:
    """Whether Python itself can open a path.

    >>> is_local("data/records"), is_local("gs://bucket/records")
    (True, False)
    """
    return "://" not in os.fspath(path)


def open_file(path: Path, mode: str = "r") -> IO[Any]:
    """A file that is open; text is UTF-8.

    Args:
      path: the file.
      mode: "r", "w", "a" or one of these with "b".

    Raises:
      OSError: if it cannot be opened.  What goes wrong later with one that is not local is an
        error of TensorFlow: use `as_os_errors` around it.
    """
    if is_local(path):
        return open(path, mode, encoding=None if "b" in mode else "utf-8")
    file = _gfile().GFile(os.fspath(path), mode)
    with as_os_errors():
        if "r" in mode:
            file.size()  # opens it, or says why not
    return file


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
      OSError: if it cannot be read.
    """
    if is_local(path):
        with open(path, "rb") as file:
            return file.read()
    with as_os_errors(), open_file(path, "rb") as file:
        return file.read()


def read_text(path: Path) -> str:
    """The content of a file of text in UTF-8.

    Raises:
      OSError: if it cannot be read.
      UnicodeDecodeError: if it is no text.
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
    """The names of files and folders in a folder, sorted; none if there is no such folder.

    Args:
      folder: where to look.
      pattern: of the names, as `fnmatch` takes it.
    """
    try:
        if is_local(folder):
            names = os.listdir(folder)
        else:
            with as_os_errors():
                names = [each.rstrip("/") for each in _gfile().listdir(os.fspath(folder))]
    except FileNotFoundError:
        return []
    return sorted(each for each in names if fnmatch.fnmatchcase(each, pattern))


def paths_starting_with(path: Path) -> list[str]:
    """The files and folders whose paths begin with `path`, which may be a part of a name."""
    if is_local(path):
        return sorted(glob.glob(glob.escape(os.fspath(path)) + "*"))
    folder, start = os.path.split(os.fspath(path))
    return [os.path.join(folder, each) for each in names_in(folder) if each.startswith(start)]


def facts_of(path: Path) -> FileFacts:
    """The size of a file, and when it was changed.

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
    """Makes a folder, if it is not there, with those that it is in.

    Raises:
      OSError: if it cannot be made.
    """
    if is_local(path):
        os.makedirs(path, exist_ok=True)
    else:
        with as_os_errors():
            _gfile().makedirs(os.fspath(path))


def replace(old: Path, new: Path) -> None:
    """Gives a file or folder another name; a file of that name is gone.

    Raises:
      OSError: if that fails.
    """
    if is_local(new):
        os.replace(old, new)
    else:
        with as_os_errors():
            _gfile().rename(os.fspath(old), os.fspath(new), overwrite=True)


def upload(source: str, target: Path, last: str) -> None:
    """Copies a folder of this machine, or a file, onto another file system.

    Args:
      source: the folder or file.
      target: what it is to be called there.
      last: the name of the file in the folder without which the others are nothing to a reader: it
        comes last, as folders cannot be moved as a whole everywhere.

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
    """Removes a file, or a folder with all that is in it, if it is there."""
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
    """Errors of TensorFlow's file systems in the block become errors of Python's.

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


def _gfile() -> Any:
    # Commands read their options before they import TensorFlow, which takes seconds.
    import tensorflow as tf  # noqa: PLC0415

    return tf.io.gfile
