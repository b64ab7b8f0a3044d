"""Files that spare the next run some work: beside the data, or in the user's cache folder."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy import file_systems
from model_deploy.commands import replaced_file


def in_user_cache(kind: str, path: str, name: str) -> str:
    """Where the file of something at `path`, on any file system, is in the cache folder.

    That is `$XDG_CACHE_HOME`, or else `~/.cache`.

    Args:
      kind: a folder for all files of this kind.
      path: of the data; the same one however it is written.
      name: what the file's name ends with.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    whole = os.path.abspath(path) if file_systems.is_local(path) else path
    return os.path.join(cache, "model_deploy", kind, f"{digest(whole)}{name}")


def digest(text: str) -> str:
    """A short name for a text: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def write_first(places: Sequence[str], write: Callable[[Any], object]) -> str | None:
    """Writes a whole file to the first place that can be written, and returns that; else None.

    Args:
      places: paths, on any file system; folders are made.
      write: gets the open binary file.
    """
    for place in places:
        with contextlib.suppress(OSError):
            file_systems.make_folders(os.path.dirname(place) or ".")
            with replaced_file(place, "wb") as file:
                write(file)
            return place
    return None
