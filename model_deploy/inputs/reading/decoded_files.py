"""`DecodedFile`: decoded images of a dataset, kept in a file from one start to the next."""

import contextlib
import io
import json
import os
import sys
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from model_deploy import file_systems
from model_deploy.inputs.files import kept_files

SMALL_BYTES = 2**23  # images with fewer bytes are decoded as fast as a file is found
_VERSION = 1
# Errors of reading a file that is not an archive of arrays, lacks an array, or is truncated.
_DAMAGED = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError),
    *(zlib.error, zipfile.BadZipFile),
)


class DecodedFile:
    """A file with the decoded images and labels of some files, beside them or in the cache.

    It is valid only if it is complete and the sizes and times of the source files have not changed.
    Problems with it are not errors: the images are decoded again.

    Args:
      paths: the source files; must be readable.
      **settings: further settings that images and labels depend on, as JSON values.

    Raises:
      OSError: if there is no such file.
    """

    def __init__(self, paths: Sequence[str], **settings: Any) -> None:
        facts = [file_systems.facts_of(path) for path in paths]
        self._facts = np.array(facts, np.int64).reshape([-1, 2])
        names = [os.path.basename(path) for path in paths]
        self._folder = os.path.dirname(paths[0])
        self._key = json.dumps([_VERSION, names, settings], sort_keys=True)

    def read(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Reads images, uint8 [n, height, width, channels], and labels, int64 [n]; None if invalid.

        Prints a line that says why an existing file is not used.
        """
        for place in self._places():
            if not file_systems.is_file(place):
                continue
            try:
                found, problem = self._arrays_in(place), "is of other files"
            except _DAMAGED:
                found, problem = None, "is damaged"
            if found is not None:
                return found
            print(f"{place} {problem}: images are decoded again", file=sys.stderr, flush=True)
        return None

    def _arrays_in(self, place: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns images and labels in a kept file; None if it is of other source files."""
        with contextlib.ExitStack() as stack:
            # Opened here, as `np.load` leaves a damaged file open.
            if file_systems.is_local(place):
                source = stack.enter_context(file_systems.open_file(place, "rb"))
            else:
                source = io.BytesIO(file_systems.read_bytes(place))
            # Without pickles, as loading them can run any code.
            arrays = stack.enter_context(np.load(source, allow_pickle=False))
            if not np.array_equal(arrays["facts"], self._facts):
                return None
            images, labels = arrays["images"], arrays["labels"]  # whose checksums are verified
        if images.dtype != np.uint8 or labels.shape != images.shape[:1]:
            return None
        return images, labels.astype(np.int64)

    def write(self, images: np.ndarray, labels: np.ndarray) -> str | None:
        """Writes images and labels; returns the path, or None if small or not writable."""
        if images.nbytes < SMALL_BYTES:
            return None

        def save(file: Any) -> None:
            np.savez(file, facts=self._facts, images=images, labels=labels)

        return kept_files.write_first(self._places(), save)

    def _places(self) -> list[str]:
        """Returns the possible paths; the first is beside the images, and moves with them."""
        name = f".{kept_files.digest(self._key)}.decoded.npz"
        beside = os.path.join(self._folder, name)
        return [beside, kept_files.in_user_cache("decoded", self._folder, name)]
