"""Checkpoints of what changed: rows of growing tables since the last whole checkpoint.

Beside `model.ckpt-100`, a whole one, stands `changes.ckpt-120`: the rows that steps 100 to 119
used, and whole what is no table.  Restoring takes both.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.checkpoints.aside import changes_after, set_aside
from model_deploy.checkpoints.damage import quick_damage
from model_deploy.checkpoints.files import CHANGES_NAME, named_step, step_of
from model_deploy.checkpoints.good import say_once
from model_deploy.checkpoints.kept import KeptCheckpoints
from model_deploy.checkpoints.manifest import write_manifest
from model_deploy.checkpoints.state_file import read_state, write_state
from model_deploy.embeddings import GrowingShard, growing_shards, scatter

# Optimizers by rows know what a row has missed in so many steps, and in some more.
MOST_STEPS = 4096
# Of each index, and with each index for its rows: the numbers of the rows.
_ROWS = "changed_rows"
_BASE = "step_of_whole_checkpoint"
# Steps of a replica whose update may come after a checkpoint that was written after their look-up.
_STEPS_IN_FLIGHT = 4


class ChangesWriter:
    """What saves, and restores, the rows that changed since a whole checkpoint.

    Args:
      train_dir: folder of the run.
      new_saver: makes a `tf.train.Saver` of given objects.
      others: what is saved whole, all but `rows_variables`; objects for a saver.
      num_replicas: number of replicas that make steps by themselves; 1 for steps made together.

    Attributes:
      saved: what changes have, objects for a saver.
      saver: writes and restores them.
      kept: the newest changes, which a whole checkpoint makes superfluous.
    """

    def __init__(
        self,
        train_dir: str,
        new_saver: Callable[[Sequence[Any]], Any],
        others: Sequence[Any],
        num_replicas: int,
    ) -> None:
        self.kept = KeptCheckpoints(train_dir, CHANGES_NAME, 1, state_file=CHANGES_NAME)
        self._in_flight = _STEPS_IN_FLIGHT * (num_replicas - 1)
        # A saver takes no feeds.
        self._base = tf.Variable(
            0, False, dtype=tf.int64, name=_BASE, collections=[], use_resource=True
        )
        self._new_base = tf.placeholder(tf.int64, [])
        self._set_base = self._base.assign(self._new_base)
        tables = [each for shard in growing_shards() for each in self._of_shard(shard)]
        self.saved = [self._base, *others, *tables]
        self.saver = new_saver(self.saved)

    def note_base(self, session: Any, whole: str) -> None:
        """Notes, before changes are read, the whole checkpoint since which they are wanted."""
        session.run(self._set_base, {self._new_base: named_step(whole)})

    def _of_shard(self, shard: GrowingShard) -> list[Any]:
        """Returns what saves the changed rows of a shard: one object for each of its indexes."""
        made = []
        for index, variables in _variables_by_index(shard):
            with tf.device(index.device):
                base = tf.cast(self._base.read_value(), tf.int32) - self._in_flight
                rows = tf.where(index.seen.read_value() >= base)[:, 0]
            saved = {f"{_scope(index)}/{_ROWS}": rows}
            for variable in variables:
                with tf.device(variable.device):
                    saved[f"{variable.op.name}/{_ROWS}"] = variable.sparse_read(rows)
            made.append(
                internals.saved_and_restored(f"{_scope(index)}/{_ROWS}", saved, _scatter(variables))
            )
        return made


def rows_variables() -> set[str]:
    """Returns the names of the variables of which changes have changed rows only."""
    return {
        variable.op.name
        for shard in growing_shards()
        for _, variables in _variables_by_index(shard)
        for variable in variables
    }


def check_changes() -> None:
    """Checks that the optimizers of growing tables change only the rows of a step.

    Raises:
      ValueError: naming the first variable that an op changes as a whole.
    """
    for shard in growing_shards():
        for variable in shard.row_variables():
            if op := shard.whole_changes.get(variable.op.name):
                raise ValueError(
                    "checkpoint_increments must be 0 with an optimizer that changes all rows of a "
                    f"table in each step, got {op} of {variable.op.name}; row_adam and others of "
                    "its kind change the rows of the step"
                )


class Changes(NamedTuple):
    """A checkpoint of changes.

    Attributes:
      path: its path.
      step: its global step.
    """

    path: str
    step: int


def changes_since(whole: str) -> Changes | None:
    """Returns the newest changes since a whole checkpoint; None if there are none.

    The calling process must be the chief of the run: damaged changes are set aside.
    """
    for path in reversed(changes_after(whole)):
        if (damage := quick_damage(path)) is not None:
            set_aside(path)
            say_once(f"{damage}: kept aside as damaged.*, going on from {whole} without it")
        elif step_of(whole) == tf.train.NewCheckpointReader(path).get_tensor(_BASE):
            return Changes(path, named_step(path))
    return None


def merge(whole: str, changes: Changes) -> str:
    """Writes the whole checkpoint of the step of changes, beside them; returns its path.

    All values pass through the memory of this process.
    """
    path = f"{whole[: -len(str(step_of(whole)))]}{changes.step}"
    values = _merged(whole, changes.path)
    written = f"{path}_temp_merged"
    with tf.Graph().as_default(), tf.Session() as session:
        # Fed, as a graph holds at most 2 GB of constants.
        fed = {tf.placeholder(value.dtype, value.shape): value for value in values.values()}
        save = tf.raw_ops.SaveV2(
            prefix=written,
            tensor_names=list(values),
            shape_and_slices=[""] * len(values),
            tensors=list(fed),
        )
        session.run(save, fed)
        session.run(
            tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=[written], destination_prefix=path)
        )
    folder = os.path.dirname(path)
    state = read_state(folder)
    write_state(folder, [*(state.listed if state else []), path])
    write_manifest(path, changes.step)
    return path


def _merged(whole: str, changes: str) -> dict[str, np.ndarray]:
    """Returns all values of a run by name: those of a whole checkpoint, with what changed."""
    old, new = tf.train.NewCheckpointReader(whole), tf.train.NewCheckpointReader(changes)
    values = {name: old.get_tensor(name) for name in old.get_variable_to_shape_map()}
    for name in new.get_variable_to_shape_map():
        variable = name.removesuffix(f"/{_ROWS}")
        if variable == name:
            values[name] = new.get_tensor(name)
        elif variable in values:  # else the numbers of the rows
            values[variable][new.get_tensor(_rows_of(variable))] = new.get_tensor(name)
    values.pop(_BASE)
    return values


def _rows_of(variable: str) -> str:
    """Returns the name of the rows that changes have of a variable of a table."""
    for index in ("index", "waiting"):
        if variable.rpartition("/")[0].endswith(f"/{index}"):
            return f"{variable.rpartition('/')[0]}/{_ROWS}"
    return f"{variable.partition('/values')[0]}/index/{_ROWS}"


def _variables_by_index(shard: GrowingShard) -> list[tuple[Any, list[Any]]]:
    """Returns each index of a shard, with the variables that have a row for each of its rows."""
    found = [(shard.index, [*shard.index.of_rows(), *shard.row_variables()])]
    if shard.waiting is not None:
        found.append((shard.waiting, shard.waiting.of_rows()))
    return found


def _scope(index: Any) -> str:
    return str(index.ids.op.name.rpartition("/")[0])


def _scatter(variables: Sequence[Any]) -> Callable[..., Any]:
    """Returns the function that restores changed rows: of row numbers, and rows of each."""

    def restore(rows: Any, *values: Any) -> Any:
        done = []
        for variable, its_rows in zip(variables, values, strict=True):
            with tf.device(variable.device):
                done.append(scatter(variable, rows, its_rows))
        return tf.group(*done)

    return restore
