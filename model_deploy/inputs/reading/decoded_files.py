"""Decoded images of a dataset, kept in a file from one start to the next."""

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

SMALL_BYTES = 2**23  # of images: to decode these takes no longer than to look for a file
_VERSION = 1
# What reading raises where a file is no archive of arrays, or lacks one, or is cut off.
_DAMAGED = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError),
    *(zlib.error, zipfile.BadZipFile),
)


class DecodedFile:
    """Images and labels of some files, in a file beside them or in the cache folder.

    It counts only if it is whole and the files have the sizes and times that they had when they
    were decoded.  What goes wrong with it costs time, and is no error.

    Args:
      paths: the files; must be readable.
      **settings: what else the images and labels depend on, as JSON has it.

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
        """Images, uint8 [n, height, width, channels], and labels, int64 [n]; None without any.

        Says in a line why a file that is there is not taken.
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
        """The images and labels in a kept file; None where other files were decoded into it."""
        with contextlib.ExitStack() as stack:
            # Not left to `np.load`, which leaves a damaged file open.
            if file_systems.is_local(place):
                source = stack.enter_context(file_systems.open_file(place, "rb"))
            else:
                source = io.BytesIO(file_systems.read_bytes(place))
            # Without pickles: reading those runs whatever code is in them.
            arrays = stack.enter_context(np.load(source, allow_pickle=False))
            if not np.array_equal(arrays["facts"], self._facts):
                return None
            images, labels = arrays["images"], arrays["labels"]  # whose checksums are verified
        if images.dtype != np.uint8 or labels.shape != images.shape[:1]:
            return None
        return images, labels.astype(np.int64)

    def write(self, images: np.ndarray, labels: np.ndarray) -> str | None:
        """Keeps them; returns where, or None for few bytes or where nothing can be written."""
        if images.nbytes < SMALL_BYTES:
            return None

        def save(file: Any) -> None:
            np.savez(file, facts=self._facts, images=images, labels=labels)

        return kept_files.write_first(self._places(), save)

    def _places(self) -> list[str]:
        """Where the kept file may be; the first place moves with the images."""
        name = f".{kept_files.digest(self._key)}.decoded.npz"
        beside = os.path.join(self._folder, name)
        return [beside, kept_files.in_user_cache("decoded", self._folder, name)]
