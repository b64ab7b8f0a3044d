"""Translates names of arguments in errors into the names of flags that the user typed."""

import contextlib
import os
import re
from collections.abc import Iterator

from model_deploy import file_systems

_TELLS_NOTHING = re.compile(r"\s*|[=\-]{3,}|From /job:\S+:|\d+ root error\(s\) found\.")
# TensorFlow's account of where ops were made, in front of what went wrong.
_PLACES_OF_OPS = re.compile(
    r"\AGraph execution error:\s+(?:Detected at node .*?\nNode: '[^'\n]*'\n)*", re.DOTALL
)
# And in front of what went wrong in a function of a `tf.data` pipeline, from TensorFlow 2.17 on.
_PLACE_IN_PIPELINE = re.compile(r"\AError in user-defined function passed to .*?: Iterator::\S+: ")


@contextlib.contextmanager
def named_as(**flags: str) -> Iterator[None]:
    """Replaces argument names by flag names in a `ValueError` raised in the `with` block.

    A name is replaced at the beginning of the message and in `name=value`.  For commands that pass
    their options to library functions; callers from Python see the argument names.

    >>> with named_as(data_dir="dataset_dir"):
    ...     raise ValueError("data_dir must be a folder, got 'x'")
    Traceback (most recent call last):
    ValueError: dataset_dir must be a folder, got 'x'

    Args:
      **flags: argument name, or first words of a message -> flag or words that replace it.

    Raises:
      ValueError: the block's error, with the names of flags.
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
    """Returns the message of an error, without TensorFlow's account of its place.

    TensorFlow puts source lines before an error raised in a function of a `tf.data` pipeline.
    """
    while str(error).startswith("in user code:") and error.__context__ is not None:
        error = error.__context__
    return str(error)


def line_of(error: BaseException) -> str:
    """Returns the first line of an error that tells what is wrong.

    In front of an error of another task TensorFlow writes lines that only name the task, or rule
    off; in front of an error of an op, where the op was made or in which step of a pipeline it is.
    Behind it comes another account of the place.
    """
    message = str(getattr(error, "message", None) or message_of(error)).strip()
    lines = _PLACES_OF_OPS.sub("", message).splitlines()
    telling = [line.strip() for line in lines if not _TELLS_NOTHING.fullmatch(line)]
    return _PLACE_IN_PIPELINE.sub("", (telling or lines or [type(error).__name__])[0])


def make_folder(field: str, path: str | os.PathLike[str]) -> None:
    """Makes a folder and its parents, if missing; errors name the field.

    Args:
      field: name of the option that names the folder.
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
