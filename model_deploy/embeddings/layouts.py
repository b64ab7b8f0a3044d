"""Restores growing tables from checkpoints in which they have other shards or other limits.

Rows move to the shards that own their ids now, in the order of the saved shards.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.embeddings.index import Index
from model_deploy.embeddings.shards import GrowingShard, growing_shards

# Reads names -> shapes of a checkpoint.
Shapes = dict[str, list[int]]


class _Saved(NamedTuple):
    """The scopes of a saved table's shards, and how many rows each index had."""

    scopes: list[str]
    num_rows: list[int]


def moved_variables(checkpoint: str) -> dict[str, Any]:
    """Returns what restores the variables of tables that a checkpoint has in another layout.

    Reads the graph's growing tables, and adds ops to the default graph.

    Args:
      checkpoint: path of the checkpoint.

    Returns:
      By variable name an object for `tf.train.Saver`, of the variable's shape; empty where all
      tables are as they were.

    Raises:
      ValueError: if a table was saved with another width.
    """
    shards = growing_shards()
    if not shards:
        return {}
    shapes = tf.train.NewCheckpointReader(checkpoint).get_variable_to_shape_map()
    found: dict[str, Any] = {}
    of_clones = {variable.op.name for variable in tf.local_variables()}
    for shard in shards:
        if shard.values.op.name in of_clones:
            continue  # a copy for all-reduce, which starts from the first clone's
        saved = _saved(shapes, shard)
        if saved is not None:
            found.update(_restored(shapes, shard, saved))
    return found


def _saved(shapes: Shapes, shard: GrowingShard) -> _Saved | None:
    """Returns the other layout in which a table was saved; None if it is the same or missing."""
    scopes = [shard.table_scope]
    if f"{shard.table_scope}/index/ids" not in shapes:
        numbered = (f"{shard.table_scope}/shard_{i}" for i in range(len(shapes)))
        scopes = []
        for scope in numbered:
            if f"{scope}/index/ids" not in shapes:
                break
            scopes.append(scope)
    if not scopes:
        return None
    width, saved_width = shard.values.shape[1], shapes[f"{scopes[0]}/values"][1]
    if width != saved_width:
        raise ValueError(
            f"table {shard.table_scope}: width must be {saved_width} as in the checkpoint, got "
            f"{width}"
        )
    num_rows = [shapes[f"{scope}/index/ids"][0] for scope in scopes]
    if len(scopes) == shard.count and num_rows[shard.number] == shard.index.ids.shape[0]:
        return None
    return _Saved(scopes, num_rows)


def _restored(shapes: Shapes, shard: GrowingShard, saved: _Saved) -> dict[str, Any]:
    """Returns what restores each variable of a shard from the shards that were saved."""
    found = {}
    indexes = {"index": shard.index}
    if shard.waiting is not None:
        indexes["waiting"] = shard.waiting
    for name, index in indexes.items():
        if f"{saved.scopes[0]}/{name}/ids" not in shapes:
            continue  # the table had no such index
        for variable in index.variables():
            kind = variable.op.name.rpartition("/")[2]
            names = {f"{scope}/{name}/ids": tf.int64 for scope in saved.scopes}
            convert = _of_index(shard, index, kind, len(saved.scopes))
            if kind in ("seen", "counts"):
                names.update({f"{s}/{name}/{kind}": tf.int32 for s in saved.scopes})
            found[variable.op.name] = internals.restored_by(variable, convert, names)
    for variable in shard.row_variables():
        kind = variable.op.name.removeprefix(f"{shard.scope}/")
        if f"{saved.scopes[0]}/{kind}" in shapes:
            names = {f"{scope}/index/ids": tf.int64 for scope in saved.scopes}
            names.update({f"{s}/{kind}": variable.dtype.base_dtype for s in saved.scopes})
            convert = _of_rows(shard, saved)
            found[variable.op.name] = internals.restored_by(variable, convert, names)
    for variable in tf.global_variables():
        name = variable.op.name
        of_first = f"{saved.scopes[0]}/{name.removeprefix(f'{shard.scope}/')}"
        if name.startswith(f"{shard.scope}/values/") and name not in found and of_first in shapes:
            # Numbers of an optimizer that are the same for all shards.
            names = {of_first: variable.dtype.base_dtype}
            found[name] = internals.restored_by(variable, lambda value: value, names)
    return found


def _own_rows(shard: GrowingShard, ids: Sequence[Any]) -> tuple[Any, Any]:
    """Returns the places, among the saved rows, of ids that the shard owns, and these ids."""
    together = tf.concat(ids, 0)
    places = tf.where((together >= 0) & tf.equal(shard.owners(together), shard.number))[:, 0]
    fits = tf.debugging.Assert(
        tf.size(places) <= shard.index.num_rows,
        [f"table {shard.table_scope}: max_rows must be enough for the rows of the checkpoint in "
         f"one of {shard.count} shards, got", tf.size(places), f"of {shard.index.num_rows}"],
    )  # fmt: skip
    with tf.control_dependencies([fits]):
        places = tf.identity(places)
    return places, tf.gather(together, places)


def _of_index(shard: GrowingShard, index: Index, kind: str, count: int) -> Callable[..., Any]:
    """Returns the function from the saved ids, and values, of all shards to an index's variable."""

    def convert(*tensors: Any) -> Any:
        places, ids = _own_rows(shard, tensors[:count])
        if kind in ("seen", "counts"):
            own = tf.gather(tf.concat(tensors[count:], 0), places)
            return index.filled(kind, own)
        return index.of_ids(kind, ids)

    return convert


def _of_rows(shard: GrowingShard, saved: _Saved) -> Callable[..., Any]:
    """Returns the function from the saved ids and rows of all shards to the rows of a shard."""

    def convert(*tensors: Any) -> Any:
        count = len(saved.scopes)
        places, _ = _own_rows(shard, tensors[:count])
        values = [
            rows[:num_rows] for rows, num_rows in zip(tensors[count:], saved.num_rows, strict=True)
        ]
        own = tf.gather(tf.concat(values, 0), places)
        fresh = tensors[count][-1:]
        num_missing = shard.values.shape[0] - tf.shape(own)[0]
        return tf.concat([own, tf.repeat(fresh, num_missing, axis=0)], 0)

    return convert
