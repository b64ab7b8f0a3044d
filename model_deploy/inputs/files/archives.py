"""Extracts archives from untrusted sources."""

import contextlib
import itertools
import os
import pathlib
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, NamedTuple

_MAX_BYTES = 4 * 2**30
# Long names and other extended headers, which tarfile reads into memory whole.
_MAX_HEADER_BYTES = 1 << 20
_MAX_MEMBERS = 2_000_000
_EXTENDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _TarInfo(tarfile.TarInfo):
    """A header of a tar archive, if it is not one that fills the memory."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> "_TarInfo":
        """Reads a header of 512 bytes."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENDED and found.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError(
                f"headers must have at most {_MAX_HEADER_BYTES} bytes, got {found.size}"
            )
        return found


class _Member(NamedTuple):
    """A file, folder or other member of an archive.

    Attributes:
      name: path in the archive.
      size: size in bytes.
      kind: "file", "folder", or a description of another kind.
      open: function that opens a file; None for an empty one.
    """

    name: str
    size: int
    kind: str
    open: Callable[[], IO[bytes] | None]


def extract(
    archive: str | os.PathLike[str],
    target: str | os.PathLike[str],
    max_bytes: int = _MAX_BYTES,
    *,
    keep_files: bool = False,
) -> None:
    """Extracts a zip or tar archive, compressed or not, into a folder.

    Before anything is written all members are checked: only plain files and folders, inside of the
    target, and of limited total size.  They are extracted into a temporary folder in the target and
    moved into place when all are complete.

    Args:
      archive: path of the archive.
      target: the folder to extract into.
      max_bytes: maximum total size of the extracted files.
      keep_files: whether to keep files in existing folders that the archive does not have.

    Raises:
      ValueError: if the archive is broken, or a member fails the checks.
    """
    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (
            _opened(archive) as members,
            tempfile.TemporaryDirectory(prefix=".extracting-", dir=folder) as temporary,
        ):
            _check(members, str(archive), max_bytes)
            for member in members:
                _extract_member(member, pathlib.Path(temporary))
            for each in pathlib.Path(temporary).iterdir():
                _move(each, folder / each.name, keep_files)
    except (
        *(tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError),
        RuntimeError,  # a zip archive with a password or unknown compression
    ) as error:
        line = " ".join(str(error).split())
        raise ValueError(f"{os.fspath(archive)}: must be a whole archive, got {line}") from error


@contextlib.contextmanager
def _opened(archive: str | os.PathLike[str]) -> Iterator[list[_Member]]:
    """Yields the members of an archive, while its file is open."""
    with open(archive, "rb") as file:
        is_zip = file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")  # the latter if empty
    if is_zip:
        with zipfile.ZipFile(archive) as zipped:
            yield [_in_zip(zipped, each) for each in zipped.infolist()]
    else:
        with tarfile.open(archive, tarinfo=_TarInfo) as tar:
            members = [_in_tar(tar, each) for each in itertools.islice(tar, _MAX_MEMBERS + 1)]
            if len(members) > _MAX_MEMBERS:
                raise tarfile.ReadError(f"there must be at most {_MAX_MEMBERS} members, got more")
            yield members


def _in_tar(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Member:
    kind = "file" if member.isreg() else "folder" if member.isdir() else f"type {member.type!r}"
    return _Member(member.name, member.size, kind, lambda: tar.extractfile(member))


def _in_zip(zipped: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Member:
    mode = member.external_attr >> 16  # zero where the archive was not made on Unix
    kind = "folder" if member.is_dir() else "file"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        kind = f"mode {oct(mode)}"
    return _Member(member.filename, member.file_size, kind, lambda: zipped.open(member))


def _check(members: list[_Member], archive: str, max_bytes: int) -> None:
    """Checks that members are plain files or folders inside of the target, and not too large."""
    for member in members:
        parts = pathlib.PurePosixPath(member.name).parts
        outside = member.name.startswith(("/", "\\")) or ".." in parts
        if outside or "\\" in member.name or ":" in member.name or "\0" in member.name:
            raise ValueError(f"{archive}: paths must be inside the target, got {member.name!r}")
        if member.kind not in ("file", "folder"):
            raise ValueError(
                f"{archive}: members must be plain files or folders, got {member.name!r} of "
                f"{member.kind}"
            )
    total = sum(member.size for member in members)
    if total > max_bytes:
        raise ValueError(f"{archive}: must extract to at most {max_bytes} bytes, got {total}")


def _extract_member(member: _Member, folder: pathlib.Path) -> None:
    # Not with `tar.extract`: it would also set owners and permissions.
    path = folder / member.name
    if member.kind == "folder":
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = member.open()
    with path.open("wb") as file:
        if content is not None:
            with content:
                shutil.copyfileobj(content, file)


def _move(path: pathlib.Path, place: pathlib.Path, keep_files: bool) -> None:
    """Moves an extracted file or folder into place, merging folders with `keep_files`."""
    if keep_files and path.is_dir() and place.is_dir():
        for each in path.iterdir():
            _move(each, place / each.name, keep_files)
        return
    if place.is_dir():
        shutil.rmtree(place)
    path.replace(place)
