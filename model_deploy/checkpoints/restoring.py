"""Fine-tuning: which variables are restored from a checkpoint, and which are trained.

A scope matches whole parts of a name: `LeNet/fc` matches `LeNet/fc/weights`, but not
`LeNet/fc4/weights`, as it did in TF-Slim's scripts.
"""

import functools
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals, slim
from model_deploy.checkpoints.choosing import with_checkpoint
from model_deploy.checkpoints.files import few
from model_deploy.checkpoints.fine_tune_options import FineTuneOptions, split_scopes
from model_deploy.checkpoints.resuming import checkpoint_to_resume
from model_deploy.commands import aligned

RESTORED, SKIPPED, MISSING, MIS_SHAPED = "restored", "skipped", "missing", "mis-shaped"


class VariableRow(NamedTuple):
    """The comparison of one variable of the model with a checkpoint.

    Attributes:
      name: name of the variable in the checkpoint.
      shape: shape in the model, a list of sizes in words.
      saved: shape in the checkpoint, with the dtype if that differs; None if missing.
      state: `restored`, `skipped` (its scope is excluded), `missing` or `mis-shaped`.
    """

    name: str
    shape: str
    saved: str | None
    state: str


def restore_fn(
    options: FineTuneOptions, show: Callable[[str], object] = print
) -> Callable[[Any], None] | None:
    """Returns a function that restores the model in the default graph, for `train(init_fn=...)`.

    Args:
      options: the settings.
      show: called with a table of all variables of the model, before any error is raised.

    Returns:
      A function of a session; None without a `checkpoint_path`.

    Raises:
      ValueError: if there is no such checkpoint; if an excluded scope has no variable; or if a
        variable outside of excluded scopes is missing or has another shape.
    """
    if options.checkpoint_path is None:
        return None
    named = options.checkpoint_path
    variables = by_name(slim.get_model_variables() or tf.trainable_variables())

    @functools.cache
    def saver_of(checkpoint: str) -> Any:
        rows = compare(checkpoint, variables, excluded_names(options, variables))
        show(table(checkpoint, rows))
        check_rows(options, checkpoint, rows)
        restored = {row.name: variables[row.name] for row in rows if row.state == RESTORED}
        return tf.train.Saver(restored, name="restore_to_fine_tune")

    with_checkpoint(named, saver_of)

    def restore(session: Any) -> None:
        with session.graph.as_default():
            with_checkpoint(named, lambda path: saver_of(path).restore(session, path))

    return restore


def variables_to_train(trainable_scopes: str | None) -> list[Any]:
    """Returns the trainable variables of the default graph, of any shapes, in the given scopes.

    Args:
      trainable_scopes: scopes with commas between; None for all variables.

    Raises:
      ValueError: for a scope without variables, listing the existing scopes.
    """
    variables = tf.trainable_variables()
    if trainable_scopes is None:
        return variables
    names = by_name(variables)
    scopes = split_scopes("trainable_scopes", trainable_scopes)
    inside = _inside("trainable_scopes", scopes, names)
    return [variable for variable in variables if _name_and_shape(variable)[0] in inside]


def check_start(train_dir: str, checkpoint_path: str | None, resume: str = "auto") -> None:
    """Checks that a run has one start: its own checkpoint, another run's, or none.

    Args:
      train_dir: folder of the run's own checkpoints.
      checkpoint_path: checkpoint to fine-tune; None for none.
      resume: see `checkpoint_to_resume`.

    Raises:
      ValueError: as `checkpoint_to_resume`; if both exist, saying what to do.
    """
    own = checkpoint_to_resume(train_dir, resume)
    if checkpoint_path is not None and own is not None:
        raise ValueError(
            f"checkpoint_path must not be given where a run goes on from {own}, got "
            f"{checkpoint_path}: to go on, leave out --checkpoint_path; to fine-tune anew, "
            "give another --train_dir"
        )


def compare(
    checkpoint: str, variables: Mapping[str, Any], excluded: Collection[str] = ()
) -> list[VariableRow]:
    """Compares variables with a checkpoint; returns one row per variable, in order.

    Args:
      checkpoint: path of the checkpoint.
      variables: variables of any shapes, or lists of slices of a partitioned one, by their names
        in the checkpoint.
      excluded: names of variables not to be restored.
    """
    reader = tf.train.NewCheckpointReader(checkpoint)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    rows = []
    for name, variable in variables.items():
        first = variable[0] if isinstance(variable, list) else variable
        shape = str(_name_and_shape(first)[1])
        kind = first.dtype.base_dtype
        saved = None
        if name in shapes:
            saved = str(shapes[name])
            saved += "" if types[name] == kind else f" {types[name].name}"
        if name in excluded:
            state = SKIPPED
        elif saved is None:
            state = MISSING
        else:
            state = RESTORED if saved == shape else MIS_SHAPED
        rows.append(VariableRow(name, shape, saved, state))
    return rows


def table(checkpoint: str, rows: Sequence[VariableRow]) -> str:
    """Formats the rows as a table below a line with their counts."""
    counts = Counter(row.state for row in rows)
    states = (RESTORED, SKIPPED, MISSING, MIS_SHAPED)
    lines = [f"from {checkpoint}: {', '.join(f'{counts[state]} {state}' for state in states)}"]
    cells = []
    for row in rows:
        note = "" if row.saved in (None, row.shape) else f"{row.saved} in the checkpoint"
        cells.append([f"  {row.state:10}", row.name, row.shape, note])
    return "\n".join([*lines, *aligned(cells, left=range(4))])


def by_name(variables: Iterable[Any]) -> dict[str, Any]:
    """Returns variables, of any shapes, by their names in checkpoints; slices of one as a list."""
    result: dict[str, Any] = {}
    for variable in variables:
        name, _ = _name_and_shape(variable)
        if internals.slice_of(variable) is None:
            result[name] = variable
        else:
            result.setdefault(name, []).append(variable)
    return result


def excluded_names(options: FineTuneOptions, names: Iterable[str]) -> set[str]:
    """Returns the names that are in scopes of `checkpoint_exclude_scopes`.

    Raises:
      ValueError: if a scope matches no name.
    """
    scopes = split_scopes("checkpoint_exclude_scopes", options.checkpoint_exclude_scopes)
    return _inside("checkpoint_exclude_scopes", scopes, names)


def check_rows(options: FineTuneOptions, checkpoint: str, rows: Sequence[VariableRow]) -> None:
    """Checks that all variables outside of excluded scopes are restored.

    Raises:
      ValueError: naming the other variables, and the flag that would exclude them.
    """
    given = options.checkpoint_exclude_scopes

    def exclude(names: Iterable[str]) -> str:
        scopes = dict.fromkeys(os.path.dirname(name) or name for name in names)
        return f"--checkpoint_exclude_scopes={','.join([*([given] if given else []), *scopes])}"

    wrong = [row.name for row in rows if row.state == MIS_SHAPED]
    if wrong:
        raise ValueError(
            "checkpoint_exclude_scopes must hold the variables that have another shape in "
            f"{checkpoint}, got {given!r} without {few(wrong)}; use {exclude(wrong)}"
        )
    missing = [row.name for row in rows if row.state == MISSING]
    if missing and not options.ignore_missing_vars:
        raise ValueError(
            f"checkpoint_path must hold the variables that are not excluded, got {checkpoint} "
            f"without {few(missing)}; to let them start anew, use {exclude(missing)} or "
            "--ignore_missing_vars"
        )
    if not any(row.state == RESTORED for row in rows):
        raise ValueError(
            f"checkpoint_path must hold a variable that is not excluded, got {checkpoint}, "
            "of which nothing would be restored"
        )


def _inside(field: str, scopes: Sequence[str], names: Iterable[str]) -> set[str]:
    """Returns the names in the scopes; each scope must match one."""
    names = list(names)
    found: set[str] = set()
    for scope in scopes:
        matching = {name for name in names if f"{name}/".startswith(f"{scope}/")}
        if not matching:
            there_are = dict.fromkeys("/".join(name.split("/")[:2]) for name in names)
            raise ValueError(
                f"{field} must be scopes of variables, got {scope!r}; there are "
                f"{', '.join(there_are)}"
            )
        found |= matching
    return found


def _name_and_shape(variable: Any) -> tuple[str, list[int]]:
    """Returns a variable's name and shape in checkpoints, for a slice those of the whole."""
    whole = internals.slice_of(variable)
    if whole is not None:
        return whole.full_name, list(whole.full_shape)
    return variable.op.name, variable.shape.as_list()
