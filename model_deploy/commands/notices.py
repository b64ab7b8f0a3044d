"""Hides notices of libraries that say nothing to a user: TensorFlow's, and those about fonts."""

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def without_tensorflow_notices() -> Iterator[None]:
    """Hides stderr in a `with` block that imports TensorFlow, unless it fails."""
    # Level 3 also hides errors: without a driver, TensorFlow reports that there is no GPU.
    level = "2" if os.path.exists("/dev/nvidiactl") else "3"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except BaseException:
            held_back.seek(0)
            os.write(stderr, held_back.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


@contextlib.contextmanager
def without_font_notices() -> Iterator[None]:
    """Hides what matplotlib logs about fonts in a `with` block, or a function, that draws.

    Where its list of fonts is not there it says that it makes one; where the list is broken it
    says, for each font of formulas, that it takes another one.
    """

    def hide(record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING

    fonts = logging.getLogger("matplotlib.font_manager")
    fonts.addFilter(hide)
    try:
        yield
    finally:
        fonts.removeFilter(hide)


def tell(text: str, stream: TextIO | None = None) -> None:
    """Prints a line, by default to stderr, as a whole, also where several threads print."""
    stream = stream or sys.stderr
    stream.write(f"{text}\n")
    stream.flush()
