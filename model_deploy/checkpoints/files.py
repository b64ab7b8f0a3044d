"""Checkpoints on disk: which exist, and whether one fits the graph's variables."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import file_systems, internals
from model_deploy.embeddings import moved_variables
from model_deploy.updating import replica_counts

CHECKPOINT_NAME = "model.ckpt"
# Of checkpoints of what changed since a whole one, see `changes`.
CHANGES_NAME = "changes.ckpt"
_SHOWN = 3


def step_of(checkpoint: str) -> int | None:
    """Returns the step in the name of a checkpoint, `model.ckpt-<step>`; None for other names."""
    match = re.search(r"-(\d+)$", checkpoint)
    return int(match.group(1)) if match else None


def named_step(checkpoint: str) -> int:
    """Returns the step in the name of a checkpoint; 0 for other names."""
    return step_of(checkpoint) or 0


def is_checkpoint(path: str) -> bool:
    """Whether there is a checkpoint of this name, in TensorFlow's new or old format."""
    return file_systems.is_file(f"{path}.index") or file_systems.is_file(path)


def steps_in(train_dir: str, name: str = CHECKPOINT_NAME) -> list[int]:
    """Returns the steps of all complete checkpoints of a name in a folder, in rising order."""
    names = file_systems.names_in(train_dir, f"{name}-*.index")
    steps = [step_of(name.removesuffix(".index")) for name in names]
    return sorted(step for step in steps if step is not None)


def check_fits(path: str, resume: str = "auto") -> None:
    """Checks that a checkpoint has the graph's global variables.

    Args:
      path: name of the checkpoint.
      resume: the setting with which `checkpoint_to_resume` found it.

    Raises:
      ValueError: naming the first variables that are missing or of another shape.
    """
    others = {*counts_of_others(path), *moved_variables(path)}
    variables = {each.op.name: each for each in tf.global_variables() if each.op.name not in others}
    wrong = describe_misfits(path, variables)
    if wrong:
        rule = "train_dir must be empty or hold checkpoints of this model"
        if resume not in ("auto", "never"):
            rule = "resume must be a checkpoint of this model"
        raise ValueError(f"{rule}, got {path}, where {wrong}")


def describe_counts(path: str) -> list[str]:
    """Describes, a line each, counts that a checkpoint has for another number of replicas.

    Args:
      path: name of the checkpoint.
    """
    own = replica_counts()
    return [
        f"{path} has {'the global step' if number is None else f'{name} of {number} replicas'}, "
        f"which is shared out among {own[name].shape[0]} replicas"
        for name, number in counts_of_others(path).items()
    ]


def counts_of_others(path: str) -> dict[str, int | None]:
    """Returns by name the number of replicas of a checkpoint's counts for other replicas.

    The number is None if the checkpoint has no counts, as of a single replica or of replicas that
    train together: then the global step takes their place.

    Args:
      path: name of the checkpoint.
    """
    own = replica_counts()
    if not own:
        return {}
    reader = tf.train.NewCheckpointReader(path)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    found: dict[str, int | None] = {}
    for name, variable in own.items():
        shape = shapes.get(name)
        if shape is None and types.get(tf.GraphKeys.GLOBAL_STEP) == tf.int64:
            found[name] = None
        elif shape is not None and len(shape) == 1 and shape != variable.shape.as_list():
            found[name] = shape[0]
    return found


def describe_misfits(path: str, variables: Mapping[str, Any]) -> str:
    """Describes the first variables that a checkpoint lacks or has in another shape; '' if none.

    Args:
      path: name of the checkpoint.
      variables: variables, or parts of one, of any shapes, by their names in the checkpoint.
    """
    shapes = tf.train.NewCheckpointReader(path).get_variable_to_shape_map()
    wrong = []
    for name, variable in variables.items():
        if internals.slice_of(variable) is not None:
            continue  # a slice of a partitioned variable; checkpoints have the whole
        shape = variable.shape.as_list()
        if name not in shapes:
            wrong.append(f"{name} is missing")
        elif shapes[name] != shape:
            wrong.append(f"{name} has shape {shapes[name]}, not {shape}")
    return few(wrong)


def few(names: Sequence[str]) -> str:
    """Returns the first names, and the number of further ones."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
