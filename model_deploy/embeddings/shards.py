"""The shards of a table: each has the rows of some ids, on a device of its own."""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.config import DeploymentConfig
from model_deploy.embeddings.index import Index, filled_with, scatter
from model_deploy.embeddings.initial_rows import chances, mixed
from model_deploy.embeddings.table import FixedTable, GrowingTable
from model_deploy.op_types import changes_rows, changes_variable
from model_deploy.parameter_servers import keep_indices

# Behind the rows of ids: nobody's, which ids without a row read and whose values stay 0, and one
# that is never read, from which the optimizer's slots of new rows are taken.
_EXTRA_ROWS = 2
# Rows that a step of another replica may be at work on are not dropped: steps per replica.
_STEPS_IN_FLIGHT = 2
# The graph's `GrowingShard`s.  Not a string: it does not go into checkpoints.
_SHARDS = ("model_deploy", "growing_shards")


class Found(NamedTuple):
    """The rows of some ids in a shard.

    Attributes:
      values: float32 [n, width]; zeros where there is no row.
      has_row: 1 where there is a row, else 0; float32 [n].  None if all have rows.
    """

    values: Any
    has_row: Any


class Shards:
    """The variables of a table, which the graph has or gets, whatever the variable scope.

    Args:
      table: the table.
      config: the deployment; None for a graph without one.

    Attributes:
      table: as given.
      key: tells tables, and clones' copies of them, apart.
      parts: one `FixedShard` or `GrowingShard` for each device.
      shared: what stands for ids without a row: a variable [width], or None.
    """

    def __init__(self, table: FixedTable | GrowingTable, config: DeploymentConfig | None) -> None:
        self.table = table
        self.shared = None
        devices = _devices(config)
        with _root_scope(), tf.variable_scope(table.name):
            if isinstance(table, FixedTable):
                self.parts: Sequence[Any] = _fixed(table, devices)
            else:
                if config is not None and config.global_parts is not None:
                    raise ValueError(
                        f"table {table.name}: a table that grows must be without global_parts, for "
                        "which a step may be given up after its look-ups, got "
                        f"{config.global_parts}"
                    )
                self.parts = [
                    _noted(GrowingShard(table, i, len(devices), device, config))
                    for i, device in enumerate(devices)
                ]
                if table.without_row is None:
                    self.shared = tf.get_variable(
                        "shared", [table.width], initializer=tf.zeros_initializer()
                    )
        self.key = self.parts[0].values.op.name

    def owners(self, ids: Any) -> Any:
        """Returns the number of the shard of each id, int64 [n]: int32 [n]."""
        if isinstance(self.table, FixedTable):
            ends = tf.constant([part.end for part in self.parts[:-1]], tf.int64)
            return tf.searchsorted(ends, ids, side="right")
        return self.parts[0].owners(ids)

    def complete(self, values: Any, has_row: Any) -> Any:
        """Puts the shared row, or the constant one, where there is no row.

        Args:
          values: float32 [n, width].
          has_row: float32 [n], or None.
        """
        if has_row is None or isinstance(self.table, FixedTable):
            return values
        instead = self.table.without_row if self.shared is None else self.shared
        # A gradient of 0 goes to the row that was read in place of a missing one.
        return tf.where_v2(has_row[:, tf.newaxis] > 0, values, instead)


class FixedShard:
    """Rows `start` to `end - 1` of a fixed table.

    Attributes:
      values: the variable, float32 [end - start, width].
      start, end: ids.
      device: of the variable.
    """

    def __init__(self, values: Any, start: int, end: int) -> None:
        self.values, self.start, self.end, self.device = values, start, end, values.device

    def look_up(self, ids: Any) -> Found:
        """Returns the rows of ids of this shard, int64 [n]."""
        with tf.device(self.device):
            return Found(_gathered(self.values, ids - self.start), None)


class GrowingShard:
    """One shard of a growing table: values by row, and the index that says which row is whose.

    Attributes:
      values: the variable, float32 [rows, width].
      index: the `Index`.
      waiting: the `Index` of ids that have not been seen in enough steps; or None.
      device: of the variable.
      table: the table.
      number, count: number of the shard, and of all shards of the table.
      scope, table_scope: scopes of the variables of the shard, and of all shards.
      whole_changes: types of ops that change all rows in a step, by name of the variable.
    """

    def __init__(
        self,
        table: GrowingTable,
        number: int,
        count: int,
        device: str | None,
        config: DeploymentConfig | None,
    ) -> None:
        self.table, self.number, self.count = table, number, count
        self.table_scope = tf.get_variable_scope().name
        limit, spare = -(-table.max_rows // count), -(-table.spare // count)
        in_flight = 0
        if config and config.clones_share_variables and config.num_aggregated is None:
            in_flight = _STEPS_IN_FLIGHT * (config.num_replicas - 1)
        order = "oldest" if table.drop == "never" else table.drop
        with contextlib.ExitStack() as stack:
            if count > 1:
                stack.enter_context(tf.variable_scope(f"shard_{number}"))
            with tf.device(device or _cpu(config)):
                self.index = Index(
                    "index",
                    limit,
                    spare,
                    order=order,
                    drop_after=table.drop_after,
                    in_flight=in_flight,
                    width=table.width,
                )
                self.waiting = None
                if table.min_steps > 1:
                    self.waiting = Index("waiting", limit, spare, order="oldest")
            with tf.device(device) if device else contextlib.nullcontext():
                self.values = tf.get_variable(
                    "values",
                    [self.index.num_rows + _EXTRA_ROWS, table.width],
                    tf.float32,
                    initializer=filled_with(0.0),
                )
        self.device = self.values.device
        self.scope = self.values.op.name.rpartition("/")[0]
        self._fresh_row = self.index.num_rows + 1
        self._resets: list[tuple[Any, Any]] = []
        self.whole_changes: dict[str, str] = {}

    def look_up(self, ids: Any, is_training: bool, of_everyone: Any = None) -> Found:
        """Returns the rows of ids, after making those that are missing.

        Args:
          ids: different ids of this shard, int64 [n].
          is_training: whether rows are made and their use is noted.
          of_everyone: the ids for which that is done, int64 [n]; None for `ids`.
        """
        index = self.index
        with index.locked() as unlock:
            if is_training:
                step = tf.cast(_global_step(), tf.int64)
                asked = ids if of_everyone is None else of_everyone
                rows, dropped, (made, first) = index.rows(
                    asked, step, lambda ids: self._make_rows(ids, step)
                )
                # Ops that reset slots are added to this one, once there are slots.
                with tf.control_dependencies([dropped]):
                    done = [tf.no_op("slots_are_reset")]
                self._resets.append((dropped, done[0]))
                done.append(scatter(self.values, made, first))
                done.append(index.touch(index.or_nobodys(rows), step))
                if of_everyone is not None:
                    with tf.control_dependencies(done):
                        rows, *_ = index.rows(ids)
            else:
                rows, *_ = index.rows(ids)
                done = []
            unlocked = unlock([*done, rows])
        with tf.device(self.device), tf.control_dependencies([unlocked]):
            values = _gathered(self.values, index.or_nobodys(rows))
            return Found(values, tf.cast(rows >= 0, tf.float32))

    def updated(self) -> None:
        """Is called when the optimizer's ops are built, and only these change rows in a step.

        New rows get the optimizer's slots of a row that no step has used.
        """
        for variable in self.row_variables():
            for op in _whole_changes(variable):
                self.whole_changes[variable.op.name] = op.type
        slots = self.row_variables()[1:]
        for dropped, op in self._resets:
            with tf.control_dependencies(None), tf.name_scope("reset_slots"):
                resets = [self._reset(slot, dropped) for slot in slots]
            internals.add_control_inputs(op, resets)
        self._resets = []

    def row_variables(self) -> list[Any]:
        """Returns the variables of which each row has a row: `values`, and optimizers' slots.

        Reads `GLOBAL_VARIABLES` and `LOCAL_VARIABLES`: slots are the variables named below `values`
        with as many rows.
        """
        name, num_rows = f"{self.values.op.name}/", self.values.shape[0]
        slots = [
            variable
            for variable in [*tf.global_variables(), *tf.local_variables()]
            if variable.op.name.startswith(name) and variable.shape[:1] == [num_rows]
        ]
        return [self.values, *slots]

    def owners(self, ids: Any) -> Any:
        """Returns the number of the shard of each id, int64 [n]: int32 [n]."""
        count = tf.constant(self.count, tf.uint64)
        return tf.cast(tf.bitcast(mixed(ids, seed=2) % count, tf.int64), tf.int32)

    def _reset(self, slot: Any, rows: Any) -> Any:
        with tf.device(slot.device):
            fresh = slot.sparse_read(tf.fill(tf.shape(rows), _int64(self._fresh_row)))
            return scatter(slot, rows, fresh)

    def _make_rows(self, ids: Any, step: Any) -> list[Any]:
        """Makes rows for those of ids, int64 [n], that get one; returns them and first values."""
        added, rows = self.index.insert(self._admitted(ids, step))
        return [rows, self.table.initial(added, self.table.width)]

    def _admitted(self, ids: Any, step: Any) -> Any:
        """Returns those of the ids without a row, int64 [n], that get one in this step."""
        if self.table.probability < 1:
            chance = chances(tf.bitcast(mixed(ids), tf.int64) + step, seed=3)
            ids = tf.boolean_mask(ids, chance < self.table.probability)
        waiting = self.waiting
        if waiting is None:
            return ids
        with waiting.locked() as unlock:
            rows, *_ = waiting.rows(ids, step, lambda missing: [waiting.insert(missing)[1]])
            is_noted = rows >= 0
            ids, rows = tf.boolean_mask(ids, is_noted), tf.boolean_mask(rows, is_noted)
            is_admitted = waiting.touch(rows, step) >= self.table.min_steps - 1
            with tf.control_dependencies([is_admitted]):
                removed = waiting.remove(tf.boolean_mask(rows, is_admitted))
            unlocked = unlock([removed])
        with tf.control_dependencies([unlocked]):
            return tf.boolean_mask(ids, is_admitted)


def _gathered(variable: Any, rows: Any) -> Any:
    """Returns rows, int64 [n], of a variable; their numbers stay on its device."""
    gather = tf.raw_ops.ResourceGather(
        resource=variable.handle, indices=rows, dtype=variable.dtype.base_dtype
    )
    gather.set_shape([None, *variable.shape[1:]])
    keep_indices(gather.op)
    return gather


def _noted(shard: GrowingShard) -> GrowingShard:
    """Notes a shard in the graph; returns the one that is noted already, if it is.

    Raises:
      ValueError: if that is one of a table of the same name that is another one.
    """
    for other in growing_shards():
        if other.values is shard.values:
            if other.table != shard.table:
                raise ValueError(
                    f"table {shard.table.name}: all look-ups must have the same table, got "
                    f"{shard.table} and {other.table}"
                )
            return other
    tf.add_to_collection(_SHARDS, shard)
    return shard


def growing_shards() -> list[GrowingShard]:
    """Returns the shards of growing tables in the default graph."""
    return list(tf.get_collection(_SHARDS))


def connect_slots() -> None:
    """Makes tables reset the slots of the rows that they drop; call it when optimizers have slots.

    `deploy` calls it.  A program that calls `optimizer.apply_gradients` itself does so afterwards;
    else a row that is made in the place of another one would have its slots.
    """
    for shard in growing_shards():
        shard.updated()


def _root_scope() -> Any:
    """Opens the variable scope without a name, in which clones get their own copies, if they do."""
    scope = tf.VariableScope(
        tf.AUTO_REUSE,
        custom_getter=tf.get_variable_scope().custom_getter,
        use_resource=True,
    )
    return tf.variable_scope(scope, auxiliary_name_scope=False)


def _whole_changes(variable: Any) -> list[Any]:
    """Returns ops that give all rows of a variable other values than initial or received ones."""
    return [
        op
        for op in variable.handle.consumers()
        if changes_variable(op.type)
        and not changes_rows(op.type)
        and op is not variable.initializer
        if "Sparse" not in op.type and not _is_received(op)
    ]


def _is_received(op: Any) -> bool:
    """Whether an op assigns a value of another process."""
    needed = graph_walk.ancestors([tensor.op for tensor in op.inputs])
    return any(each.type.startswith("Collective") for each in needed)


def _devices(config: DeploymentConfig | None) -> list[str]:
    """Returns the device of each shard; '' for the device of variables."""
    if config is None or config.num_ps_tasks == 0:
        return [""]
    return [f"{config.ps_device}/task:{i}/device:CPU:0" for i in range(config.num_ps_tasks)]


def _cpu(config: DeploymentConfig | None) -> str:
    """Returns the device of an index without parameter servers: hash tables are on CPUs."""
    return "/device:CPU:0" if config is None else config.inputs_device()


def _fixed(table: FixedTable, devices: Sequence[str]) -> list[FixedShard]:
    """Makes the variables of a fixed table, one for each device."""

    def first_rows(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        del dtype
        start = partition_info.var_offset[0] if partition_info is not None else 0
        return table.initial(tf.range(start, start + shape[0], dtype=tf.int64), table.width)

    partitioner = tf.fixed_size_partitioner(len(devices)) if len(devices) > 1 else None
    shape = [table.num_rows, table.width]
    made = tf.get_variable(
        "values", shape, tf.float32, initializer=first_rows, partitioner=partitioner
    )
    parts, start = [], 0
    for variable in made if partitioner is not None else [made]:
        end = start + variable.shape[0]
        parts.append(FixedShard(variable, start, end))
        start = end
    return parts


def _global_step() -> Any:
    return tf.train.get_or_create_global_step().read_value()


def _int64(value: int) -> Any:
    return tf.constant(value, tf.int64)
