"""The file `checkpoint` of a folder, in which TensorFlow lists checkpoints and names the newest."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from model_deploy import file_systems
from model_deploy.checkpoints.files import is_checkpoint
from model_deploy.commands import replaced_file, shortened

STATE_FILE = "checkpoint"


class State(NamedTuple):
    """What the file says.

    Attributes:
      newest: path of the newest checkpoint.
      listed: paths of all checkpoints that were kept, oldest first.
    """

    newest: str
    listed: list[str]


def read_state(folder: str) -> State | None:
    """Reads the file `checkpoint` of a folder; None without it.

    A folder that was moved is read at its present path.

    Raises:
      ValueError: naming the file, if it is damaged: what it names as the newest must also be the
        last one that it lists, if it lists any.
      OSError: if it cannot be read.
    """
    path = os.path.join(folder, STATE_FILE)
    if not file_systems.is_file(path):
        return None
    found = _empty()
    try:
        text_format.Parse(file_systems.read_text(path), found)
    except (text_format.ParseError, ValueError) as error:
        raise ValueError(f"{path} must list checkpoints, got {_line(error)}") from error
    if not found.model_checkpoint_path:
        raise ValueError(f"{path} must name the newest checkpoint, got none")
    listed = list(found.all_model_checkpoint_paths) or [found.model_checkpoint_path]
    if listed[-1] != found.model_checkpoint_path:
        named = " and ".join(map(shortened, (found.model_checkpoint_path, listed[-1])))
        raise ValueError(f"{path} must list the newest checkpoint last, got {named}")
    paths = [_present_path(folder, each) for each in listed]
    return State(paths[-1], paths)


def write_state(folder: str, checkpoints: Sequence[str], name: str = STATE_FILE) -> None:
    """Replaces the file `checkpoint` of a folder by one that lists checkpoints in it.

    Args:
      folder: the folder, whose checkpoints are listed relative to it, as it may be moved.
      checkpoints: their paths, at least one, oldest first.
      name: another name of the file.
    """
    names = [os.path.basename(each) for each in checkpoints]
    state = _empty()
    state.model_checkpoint_path = names[-1]
    state.all_model_checkpoint_paths.extend(names)
    with replaced_file(os.path.join(folder, name)) as file:
        file.write(text_format.MessageToString(state))


def _empty() -> Any:
    state = tf.train.generate_checkpoint_state_proto("", "none")
    state.Clear()
    return state


def _present_path(folder: str, path: str) -> str:
    written = os.path.join(folder, path)
    return written if is_checkpoint(written) else os.path.join(folder, os.path.basename(path))


def _line(error: Exception) -> str:
    return shortened(str(error)) or "an empty file"
