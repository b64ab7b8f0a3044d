"""Files that save the next run work: beside the data, or in the user's cache folder."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from model_deploy import file_systems
from model_deploy.commands import replaced_file


def in_user_cache(kind: str, path: str, name: str) -> str:
    """Returns a path in the cache folder (`$XDG_CACHE_HOME` or `~/.cache`) for data at `path`.

    Args:
      kind: sub-folder for all files of this kind.
      path: path of the data, on any file system; relative paths are made absolute.
      name: end of the file's name.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    whole = os.path.abspath(path) if file_systems.is_local(path) else path
    return os.path.join(cache, "model_deploy", kind, f"{digest(whole)}{name}")


def digest(text: str) -> str:
    """Returns a short name for a text: 32 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def write_first(places: Sequence[str], write: Callable[[Any], object]) -> str | None:
    """Writes a file to the first place that is writable; returns its path, or None.

    Args:
      places: paths, on any file system; folders are made.
      write: function that writes to the open binary file.
    """
    for place in places:
        with contextlib.suppress(OSError):
            file_systems.make_folders(os.path.dirname(place) or ".")
            with replaced_file(place, "wb") as file:
                write(file)
            return place
    return None
