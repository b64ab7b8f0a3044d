"""Extracts archives that nobody has to trust."""

import os
import pathlib
import shutil
import tarfile
import tempfile

_MAX_BYTES = 4 * 2**30


def extract(
    archive: str | os.PathLike[str],
    target: str | os.PathLike[str],
    max_bytes: int = _MAX_BYTES,
) -> None:
    """Extracts a tar archive, compressed or not, into a folder.

    All of it is checked before anything is written: only plain files and folders, all of
    them inside the target, and not too much.  It is extracted beside the target's files
    and moved there when it is complete.

    Raises:
      ValueError: if the archive is broken, or has something else in it.
    """
    folder = pathlib.Path(target)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (
            tarfile.open(archive) as tar,
            tempfile.TemporaryDirectory(prefix=".extracting-", dir=folder) as temporary,
        ):
            members = tar.getmembers()
            _check(members, str(archive), max_bytes)
            for member in members:
                _extract_member(tar, member, pathlib.Path(temporary))
            for each in pathlib.Path(temporary).iterdir():
                _move(each, folder / each.name)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"{os.fspath(archive)}: must be a whole archive, got {error}") from error


def _check(members: list[tarfile.TarInfo], archive: str, max_bytes: int) -> None:
    for member in members:
        parts = pathlib.PurePosixPath(member.name).parts
        outside = member.name.startswith(("/", "\\")) or ".." in parts
        if outside or "\\" in member.name or ":" in member.name or "\0" in member.name:
            raise ValueError(f"{archive}: paths must be inside the target, got {member.name!r}")
        if not (member.isreg() or member.isdir()):
            raise ValueError(
                f"{archive}: members must be plain files or folders, got {member.name!r} of "
                f"type {member.type!r}"
            )
    total = sum(member.size for member in members)
    if total > max_bytes:
        raise ValueError(f"{archive}: must extract to at most {max_bytes} bytes, got {total}")


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: pathlib.Path) -> None:
    # Not with `tar.extract`: it would also set owners and permissions.
    path = folder / member.name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    with path.open("wb") as file:
        if content is not None:  # None for members that are no files, which were rejected
            shutil.copyfileobj(content, file)


def _move(path: pathlib.Path, place: pathlib.Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    path.replace(place)
