"""Names of files with weights of Keras models."""

import os

_EXPORTS = (".weights.h5", ".keras")
_SUFFIXES = (*_EXPORTS, ".h5")


def is_weights_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file name is that of Keras weights: `.weights.h5`, `.keras` or `.h5`."""
    return os.fspath(path).endswith(_SUFFIXES)


def check_export(field: str, path: str | os.PathLike[str]) -> None:
    """Checks the name of a Keras file to write.

    Raises:
      ValueError: naming the field and the value, for another suffix.
    """
    if not os.fspath(path).endswith(_EXPORTS):
        raise ValueError(f"{field} must end with {' or '.join(_EXPORTS)}, got {os.fspath(path)!r}")


def check_file(field: str, path: str) -> None:
    """Checks the name of a Keras file to read.

    Raises:
      ValueError: naming the field and the value, for another suffix.
    """
    if not is_weights_file(path):
        raise ValueError(f"{field} must end with {', '.join(_SUFFIXES)}, got {path!r}")
