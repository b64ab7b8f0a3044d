"""Hides the notices that TensorFlow's libraries print when they load."""

import contextlib
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


def tell(text: str, stream: TextIO | None = None) -> None:
    """Prints a line, by default to stderr, as a whole, also where several threads print."""
    stream = stream or sys.stderr
    stream.write(f"{text}\n")
    stream.flush()
