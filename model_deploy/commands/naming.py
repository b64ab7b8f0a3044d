"""Errors that name what the user typed, where a flag has another name than an argument."""

import contextlib
import os
import re
from collections.abc import Iterator

from model_deploy import file_systems


@contextlib.contextmanager
def named_as(**flags: str) -> Iterator[None]:
    """In a `with` block, a `ValueError` that names an argument names the flag in its place.

    It does so where its message begins with the name, and where it has `name=value`.  Around
    calls to which a command hands its options; who calls them from Python sees their own names.

    >>> with named_as(data_dir="dataset_dir"):
    ...     raise ValueError("data_dir must be a folder, got 'x'")
    Traceback (most recent call last):
    ValueError: dataset_dir must be a folder, got 'x'

    Args:
      **flags: for each argument the flag.  In place of a name, the first words of a message.

    Raises:
      ValueError: that of the block, with the names of flags.
    """
    try:
        yield
    except ValueError as error:
        message = message_of(error)
        names = "|".join(re.escape(name) for name in sorted(flags, key=len, reverse=True))
        place = rf"^({names})\b|(?<= )({names})(?==)"
        named = re.sub(place, lambda found: flags.get(found[0], ""), message)
        if named == message:
            raise
        raise ValueError(named) from error


def message_of(error: BaseException) -> str:
    """The message of an error, without the place.

    TensorFlow rewrites an error in a function of a `tf.data` pipeline: it then begins with the
    lines of that function.
    """
    while str(error).startswith("in user code:") and error.__context__ is not None:
        error = error.__context__
    return str(error)


def make_folder(field: str, path: str | os.PathLike[str]) -> None:
    """Makes a folder, if it is not there, with those that it is in.

    Args:
      field: what names the folder.
      path: the folder.

    Raises:
      OSError: naming the field, if it cannot be made.
    """
    try:
        file_systems.make_folders(path)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(
            f"{field} must be a folder that can be written, got {os.fspath(path)}: {reason}"
        ) from error
