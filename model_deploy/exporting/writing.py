"""Writes a model as a SavedModel or a frozen graph, completely or not at all."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems
from model_deploy.checkpoints import Restorer, by_name, with_checkpoint
from model_deploy.commands import named_as
from model_deploy.exporting.serving import Signature
from model_deploy.optimization import averages_to_restore

LABELS_FILE = "labels.txt"


def restore_to_export(session: Any, checkpoint: str, use_averages: bool = False) -> str:
    """Restores a checkpoint into the variables of the session's graph.

    Args:
      session: a session of the default graph.
      checkpoint: path of the checkpoint, or of a folder, for its newest good one.
      use_averages: whether to restore the moving averages of the variables.

    Returns:
      The path of the checkpoint.

    Raises:
      ValueError: naming variables that the checkpoint lacks or has in another shape; naming the
        file, if it is damaged.
    """
    variables = averages_to_restore() if use_averages else by_name(tf.global_variables())
    with named_as(**{"the checkpoint must be one": "checkpoint_path must be a checkpoint"}):
        restorer = Restorer(variables)

        def restore(path: str) -> str:
            restorer.restore(session, path)
            return path

        return with_checkpoint(checkpoint, restore)


def write_saved_model(
    session: Any,
    signatures: Mapping[str, Signature],
    output_dir: str | os.PathLike[str],
    class_names: Sequence[str] = (),
) -> None:
    """Writes a SavedModel for `tf.saved_model.load` and TensorFlow Serving.

    Args:
      session: a session with the model's variables.
      signatures: the signatures of the model.
      output_dir: a folder that does not exist.
      class_names: lines of `assets.extra/labels.txt`; without names there is no such file.

    Raises:
      ValueError: if the folder exists.
    """
    with staged("output_dir", output_dir, last="saved_model.pb") as folder:
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.tag_constants.SERVING],
            signature_def_map={
                name: tf.saved_model.predict_signature_def(*signature)
                for name, signature in signatures.items()
            },
            main_op=tf.tables_initializer(),
        )
        builder.save()
        if class_names:
            # The folder that TensorFlow Serving leaves to users' own files.
            os.mkdir(os.path.join(folder, "assets.extra"))
            path = os.path.join(folder, "assets.extra", LABELS_FILE)
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in class_names)


def write_frozen_graph(
    session: Any,
    signatures: Mapping[str, Signature],
    output_file: str | os.PathLike[str],
    as_text: bool = False,
) -> None:
    """Writes a `GraphDef` in which variables are constants.

    Args:
      session: a session with the model's variables.
      signatures: signatures whose ops are kept, under their names.
      output_file: a file that does not exist.
      as_text: whether to write the text form.

    Raises:
      ValueError: if the file exists.
    """
    outputs = [
        tensor.op.name for signature in signatures.values() for tensor in signature.outputs.values()
    ]
    with staged("output_file", output_file) as path:
        frozen = tf.graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(), outputs
        )
        tf.io.write_graph(frozen, os.path.dirname(path), os.path.basename(path), as_text)


def check_is_new(field: str, path: str | os.PathLike[str]) -> None:
    """Raises `ValueError` if a file or folder with this name exists."""
    if os.path.lexists(path) or file_systems.exists(path):
        raise ValueError(f"{field} must not exist yet, got {os.fspath(path)}")


@contextlib.contextmanager
def staged(field: str, path: str | os.PathLike[str], last: str = "") -> Iterator[str]:
    """Yields a temporary path; what the block writes there is moved to `path` at its end.

    To another file system it is copied, a folder's file `last` after the others.

    Raises:
      ValueError: naming the field, if `path` exists.
    """
    check_is_new(field, path)
    if not file_systems.is_local(path):
        with tempfile.TemporaryDirectory() as folder:
            staged = os.path.join(folder, "staged")
            yield staged
            check_is_new(field, path)
            file_systems.upload(staged, path, last)
        return
    parent, name = os.path.split(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f".{name}.") as folder:
        staged = os.path.join(folder, name)
        yield staged
        check_is_new(field, path)  # as a move would replace a file or an empty folder
        os.rename(staged, path)
