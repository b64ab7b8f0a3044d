"""Answers requests for rows: each id once per step, all tables of a server in one message."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.embeddings.shards import FixedShard, Found, Shards
from model_deploy.embeddings.table import GrowingTable
from model_deploy.parameter_servers import send_ids, send_rows


@dataclasses.dataclass(eq=False)
class Request:
    """A look-up of one part, to be answered together with those of other parts.

    Attributes:
      shards: the table.
      ids: int64 [n].
      unique: a placeholder for the rows of all different ids, float32 [different ids, width].
      positions: a placeholder for the place of each of `ids` among the different ids, int32 [n].
      is_training: whether rows are made.
    """

    shards: Shards
    ids: Any
    unique: Any
    positions: Any
    is_training: bool

    def copied(self, twins: Any) -> "Request":
        """Returns the copy of the request in a copied part, of which `twins` knows the tensors."""
        tensors = {
            name: twins.tensor(getattr(self, name)) for name in ("ids", "unique", "positions")
        }
        return dataclasses.replace(self, **tensors)


def answer(
    groups: Sequence[Sequence[Request]],
    device: str,
    of_everyone: Callable[[Sequence["Asked"]], Sequence[Any]] | None = None,
) -> None:
    """Puts rows in the place of the placeholders of requests.

    Args:
      groups: requests that are answered together, of clones that share variables.
      device: of this worker, where ids become unique and rows arrive.
      of_everyone: where each group has tables of its own, a function from one table of each group
        to the ids, int64 [n], for which all make rows; None where all groups share their tables.
    """
    with tf.control_dependencies(None), tf.name_scope("look_up"), tf.device(device):
        asked = [[Asked(requests) for requests in _by_table(group)] for group in groups]
        if of_everyone is not None:
            for tables in zip(*asked, strict=True):
                if tables[0].is_training and isinstance(tables[0].shards.table, GrowingTable):
                    for table, ids in zip(tables, of_everyone(tables), strict=True):
                        table.of_everyone = ids
        for tables_of_group in asked:
            by_device: dict[str, list[tuple[Asked, int]]] = {}
            for asked_table in tables_of_group:
                for number, part in enumerate(asked_table.shards.parts):
                    by_device.setdefault(part.device, []).append((asked_table, number))
            for server, places in by_device.items():
                _ask(places, server, device)
            for asked_table in tables_of_group:
                asked_table.answer()


class Asked:
    """All requests of one table that are answered together.

    Attributes:
      shards: the table.
      is_training: whether rows are made.
      unique: different ids, int64 [n].
      ids: the different ids, by shard.
      of_everyone: the ids for which rows are made, int64 [n]; None for `ids`.
      found: the rows of each shard, once they have arrived on this worker.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests, self.shards = requests, requests[0].shards
        self.is_training = requests[0].is_training
        flat = tf.concat([tf.identity(request.ids) for request in requests], 0)
        unique, self._positions = tf.unique(flat)
        self.unique = _checked(self.shards.table, unique)
        self.of_everyone: Any = None
        self.ids, self._places = [self.unique], None
        if len(self.shards.parts) > 1:
            owners, count = self.shards.owners(self.unique), len(self.shards.parts)
            self.ids = tf.dynamic_partition(self.unique, owners, count)
            self._places = tf.dynamic_partition(tf.range(tf.size(unique)), owners, count)
        self.found: list[Any] = [None] * len(self.shards.parts)

    def look_up(self, number: int, ids: Any) -> Found:
        """Looks up ids, int64 [n], in the shard with a number."""
        shard = self.shards.parts[number]
        if isinstance(shard, FixedShard):
            return shard.look_up(ids)
        return shard.look_up(ids, self.is_training, self.of_everyone)

    def answer(self) -> None:
        """Puts the rows, and the positions, in the place of the placeholders."""
        rows = [self.shards.complete(*found) for found in self.found]
        unique = rows[0] if self._places is None else tf.dynamic_stitch(self._places, rows)
        sizes = [tf.size(request.ids) for request in self._requests]
        positions = tf.split(self._positions, tf.stack(sizes), num=len(sizes))
        for request, its_positions in zip(self._requests, positions, strict=True):
            _replace(request.unique, unique)
            request.positions = _replace(request.positions, its_positions)


def _by_table(requests: Sequence[Request]) -> list[list[Request]]:
    """Groups requests that are answered together, those for which rows are made first."""
    groups: dict[Any, list[Request]] = {}
    for request in sorted(requests, key=lambda request: not request.is_training):
        groups.setdefault((request.shards.key, request.is_training), []).append(request)
    return list(groups.values())


def _checked(table: Any, ids: Any) -> Any:
    """Returns ids, int64 [n], that are at least 0 and belong to a row of a fixed table."""
    where, lowest = f"table {table.name}: ids must be", tf.reduce_min(ids)
    # Without the condition that `tf.debugging.Assert` builds around this op.
    check = tf.raw_ops.Assert
    checks = [check(condition=tf.reduce_all(ids >= 0), data=[f"{where} at least 0, got", lowest])]
    if hasattr(table, "num_rows"):
        checks.append(
            check(
                condition=tf.reduce_all(ids < table.num_rows),
                data=[f"{where} less than num_rows={table.num_rows}, got", tf.reduce_max(ids)],
            )
        )
    with tf.control_dependencies(checks):
        return tf.identity(ids)


def _ask(places: Sequence[tuple[Asked, int]], server: str, worker: str) -> None:
    """Looks up the ids of all tables at one server; one message there and one back."""
    ids = [table.ids[number] for table, number in places]
    is_near = _process(server) == _process(worker)
    if not is_near:
        ids = send_ids(ids, worker, server)
    found: list[Found] = []
    before: dict[tuple[str, int], list[Any]] = {}
    for (table, number), each in zip(places, ids, strict=True):
        # A look-up that makes no rows waits, so that it sees those which the step makes.
        of_shard = before.setdefault((table.shards.key, number), [])
        with tf.control_dependencies(of_shard):
            found.append(table.look_up(number, each))
        of_shard.append(found[-1].values)
    if not is_near:
        found = _sent(found, server, worker)
    for (table, number), each in zip(places, found, strict=True):
        table.found[number] = each


def _sent(found: Sequence[Found], server: str, worker: str) -> list[Found]:
    """Sends what was found from the server to the worker: rows of one width in one message."""
    by_width: dict[int, list[int]] = {}
    for place, each in enumerate(found):
        by_width.setdefault(int(each.values.shape[1]), []).append(place)
    rows: list[Any] = [each.values for each in found]
    for places in by_width.values():
        sent = send_rows([rows[place] for place in places], server, worker)
        for place, values in zip(places, sent, strict=True):
            rows[place] = values
    flags = [each.has_row for each in found if each.has_row is not None]
    arrived = iter(send_rows(flags, server, worker))
    return [
        Found(values, None if each.has_row is None else next(arrived))
        for values, each in zip(rows, found, strict=True)
    ]


def _replace(placeholder: Any, tensor: Any) -> Any:
    """Makes all ops that take a placeholder take the tensor; returns the tensor."""
    for index, op in list(graph_walk.uses_of(placeholder)):
        internals.replace_input(op, index, tensor)
    return tensor


def _process(device: str) -> tuple[Any, Any]:
    spec = tf.DeviceSpec.from_string(device)
    return spec.job, spec.task
