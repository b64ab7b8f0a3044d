"""`Index`: which row of a table belongs to which id, and which rows are free.

All of it is variables, so that it is saved, restored, copied and sent as any other variable.  A
hash table, TensorFlow's own, makes look-ups fast; it is made of the variables where it does not fit
them, as after a restore or in a server that was restarted.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.all_reduce import note_alike
from model_deploy.embeddings.initial_rows import mixed

NO_ROW = -1
# Ids are at least 0; the hash table has the stamp of its content under this key.
_STAMP_KEY = -1
_NO_ID = -1
# In steps; rows that no step has used.
_NEVER = -1
# Of the order in which rows are dropped: bits of the step, of the count and of what decides ties.
_STEP_BITS, _COUNT_BITS, _TIE_BITS = 31, 20, 11


class Index:
    """The rows of the ids of one table, or of one shard of it; all methods build ops.

    `rows`, `insert`, `remove` and `touch` are for a `with index.locked()` block.

    Args:
      name: of its variables, in the current variable scope.
      limit: how many ids it has at most when a step begins.
      spare: how many more it may get within a step.
      order: which rows go first when there are more than `limit`: `oldest` or `rarest`.
      drop_after: rows that no step has used for so many steps go before any other; None for none.
      in_flight: rows that were used within so many steps stay.
      width: number of values that are made for a new row; 0 for none.

    Attributes:
      num_rows: number of rows, free ones included.
      ids: by row its id, or -1; int64 [num_rows + 1].  The last row is nobody's: it stands for the
        rows of ids that have none.
      seen: by row the last step that used it; int32 [num_rows + 1].
      counts: by row how many steps have used it; int32 [num_rows + 1].
      device: the device of the index.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        spare: int,
        *,
        order: str,
        drop_after: int | None = None,
        in_flight: int = 0,
        width: int = 0,
    ) -> None:
        self._width = width
        self._limit, self._order, self._drop_after = limit, order, drop_after
        self._in_flight = in_flight
        self.num_rows = limit + spare
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE, use_resource=True):
            self.ids = self._variable("ids", [self.num_rows + 1], tf.int64, _NO_ID)
            self.seen = self._variable("seen", [self.num_rows + 1], tf.int32, _NEVER)
            self.counts = self._variable("counts", [self.num_rows + 1], tf.int32, 0)
            self._free = self._variable("free", [self.num_rows], tf.int32, _last_first)
            self._num_free = self._variable("num_free", [], tf.int64, self.num_rows)
            self._stamp = self._variable("stamp", [], tf.int64, 0)
            self._last_step = self._variable("last_step", [], tf.int64, _NEVER)
        self.device = self.ids.device
        self._key = self.ids.op.name

    @staticmethod
    def _variable(name: str, shape: list[int], dtype: Any, start: Any) -> Any:
        first = start if callable(start) else filled_with(start)
        variable = tf.get_variable(name, shape, dtype, first, trainable=False)
        note_alike(variable)
        return variable

    def of_rows(self) -> list[Any]:
        """Returns the variables of which a row changes only where `seen` does."""
        return [self.ids, self.seen, self.counts]

    def variables(self) -> list[Any]:
        """Returns all variables of the index."""
        return [*self.of_rows(), self._free, self._num_free, self._stamp, self._last_step]

    def of_ids(self, kind: str, ids: Any) -> Any:
        """Returns what a variable holds where different ids, int64 [n], have the first n rows.

        Args:
          kind: name of the variable: `ids`, `free`, `num_free`, `stamp` or `last_step`.
          ids: at most `num_rows`.
        """
        count = tf.size(ids)
        if kind == "ids":
            return self.filled(kind, ids)
        if kind == "free":
            free = tf.range(self.num_rows - 1, count - 1, -1)
            return tf.pad(free, [[0, count]])
        if kind == "num_free":
            return tf.cast(self.num_rows - count, tf.int64)
        if kind == "stamp":
            return _next_stamp(tf.constant(0, tf.int64), ids)
        return tf.constant(_NEVER, tf.int64)

    def filled(self, kind: str, own: Any) -> Any:
        """Returns a variable with the given values in the first rows; see `of_ids`."""
        rest = {"ids": _NO_ID, "seen": _NEVER, "counts": 0}[kind]
        missing = self.num_rows + 1 - tf.size(own)
        return tf.pad(own, [[0, missing]], constant_values=rest)

    @contextlib.contextmanager
    def locked(self) -> Iterator[Callable[[Any], Any]]:
        """Opens the index to one step at a time, the devices scope included.

        Yields:
          A function that closes it when the ops that it is given are done, and returns the op
          that does.
        """
        with tf.device(self.device):
            mutex = tf.raw_ops.MutexV2(shared_name=f"{self._key}/mutex")
            lock = tf.raw_ops.MutexLock(mutex=mutex)
            self._hash = tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f"{self._key}/hash"
            )

            def unlock(ops: Any) -> Any:
                with tf.control_dependencies(ops):
                    return tf.raw_ops.ConsumeMutexLock(mutex_lock=lock)

            with tf.control_dependencies([lock.op]):
                yield unlock

    def rows(
        self, ids: Any, step: Any = None, make: Callable[[Any], Sequence[Any]] | None = None
    ) -> tuple[Any, Any, list[Any]]:
        """Returns the rows of ids, the rows that were dropped, and what came of making others.

        Args:
          ids: different ids, int64 [n].
          step: the step, an int64 scalar, whose first look-up makes room; None to make none.
          make: makes rows for the ids, int64 [m], that have none; returns tensors, of which the
            first is int64 [made rows], the second, if there is one, float32 [made rows, width].

        Returns:
          int64 [n], -1 where there is no row; int64 [dropped rows]; and what `make` has returned.
        """
        found = self._find(tf.concat([tf.constant([_STAMP_KEY], tf.int64), ids], 0))
        is_fresh = tf.equal(found[0], self._stamp.read_value())
        rows, nothing = found[1:], tf.zeros([0], tf.int64)
        if step is None or make is None:
            found_anew = lambda: self._found_after([self._refreshed(is_fresh)], ids)  # noqa: E731
            return tf.cond(is_fresh, lambda: rows, found_anew), nothing, []
        last_step = self._last_step.read_value()
        is_full = self._num_free.read_value() < self.num_rows - self._limit
        must_drop = (step > last_step) & is_full
        # In most steps nothing else is to be done.
        is_usual = is_fresh & tf.reduce_all(rows >= 0) & tf.logical_not(must_drop)

        def changed() -> list[Any]:
            with tf.control_dependencies([self._refreshed(is_fresh)]):
                dropped = tf.cond(
                    must_drop,
                    lambda: self._drop(self._rows_to_drop(step), step),
                    lambda: tf.zeros([0], tf.int64),
                )
            missing = tf.boolean_mask(ids, self._found_after([dropped], ids) < 0)
            made = make(missing)
            return [self._found_after(made, ids), tf.identity(dropped), *map(tf.identity, made)]

        def unchanged() -> list[Any]:
            return [rows, nothing, nothing, *no_values]

        no_values = [tf.zeros([0, self._width])] if self._width else []
        with graph_walk.new_ops() as ops:
            rows, dropped, *made = tf.cond(is_usual, unchanged, changed)
        for op in ops:
            if op.type == "If":
                # Else all ops of both branches would stand in the graph, and each step go through
                # those that do not run.
                internals.clear_attribute(op, "_lower_using_switch_merge")
        with tf.control_dependencies([rows]):
            noted = self._last_step.assign(tf.maximum(step, last_step), read_value=False)
        with tf.control_dependencies([noted]):
            return tf.identity(rows), tf.identity(dropped), made

    def or_nobodys(self, rows: Any) -> Any:
        """Returns rows, int64 [n], with nobody's row in place of -1."""
        return tf.where(rows >= 0, rows, _filled(rows, self.num_rows))

    def insert(self, ids: Any) -> tuple[Any, Any]:
        """Gives rows to ids that have none, to some of them where not enough rows are free.

        Which ones follows from the ids, whatever their order, as it depends on the clones.

        Args:
          ids: different ids, int64 [n].

        Returns:
          The ids and their rows, both int64 [at most n]; the rows once they are noted.
        """
        with tf.control_dependencies([ids]):
            num_free, stamp = self._num_free.read_value(), self._stamp.read_value()
        wanted = tf.size(ids, out_type=tf.int64)
        count = tf.minimum(wanted, num_free)
        taken = tf.cond(wanted > count, lambda: _some(ids, count), lambda: tf.identity(ids))
        places = tf.range(num_free - 1, num_free - count - 1, -1)
        rows = tf.cast(self._free.sparse_read(places), tf.int64)
        stamp = _next_stamp(stamp, taken)
        with tf.control_dependencies([rows, stamp]):
            noted = [
                scatter(self.ids, rows, taken),
                scatter(self.counts, rows, tf.zeros_like(rows)),
                scatter(self.seen, rows, _filled(rows, _NEVER)),
                self._num_free.assign(num_free - count, read_value=False),
                self._stamp.assign(stamp, read_value=False),
                self._insert_into_hash(
                    tf.concat([taken, [_STAMP_KEY]], 0), tf.concat([rows, [stamp]], 0)
                ),
            ]
        with tf.control_dependencies(noted):
            return taken, tf.identity(rows)

    def remove(self, rows: Any) -> Any:
        """Takes the ids of rows, int64 [n], away; returns the op."""
        return self._drop(rows, None).op

    def touch(self, rows: Any, step: Any) -> Any:
        """Notes that a step uses rows; returns in how many earlier steps they were used.

        Args:
          rows: different rows, or nobody's, int64 [n].
          step: the step, an int64 scalar.

        Returns:
          int32 [n], once the use is noted.
        """
        step = tf.cast(step, tf.int32)
        seen, counts = self.seen.sparse_read(rows), self.counts.sparse_read(rows)
        earlier = counts - tf.cast(seen >= step, tf.int32)
        with tf.control_dependencies([earlier]):
            noted = [
                scatter(self.seen, rows, tf.maximum(seen, step)),
                scatter(self.counts, rows, earlier + 1),
            ]
        with tf.control_dependencies(noted):
            return tf.identity(earlier)

    def _find(self, ids: Any) -> Any:
        return tf.raw_ops.LookupTableFindV2(
            table_handle=self._hash, keys=ids, default_value=tf.constant(NO_ROW, tf.int64)
        )

    def _found_after(self, done: Sequence[Any], ids: Any) -> Any:
        """Returns the rows of ids, int64 [n], after ops or tensors; -1 where there is none."""
        with tf.control_dependencies(done):
            return self._find(ids)

    def _refreshed(self, is_fresh: Any) -> Any:
        """Returns a tensor after which the hash table is that of the variables."""

        def rebuild() -> Any:
            keys, _ = tf.raw_ops.LookupTableExportV2(
                table_handle=self._hash, Tkeys=tf.int64, Tvalues=tf.int64
            )
            with tf.control_dependencies([self._remove_from_hash(keys)]):
                ids = self.ids.read_value()
                rows = tf.where(ids >= 0)[:, 0]
                made = self._insert_into_hash(
                    tf.concat([tf.gather(ids, rows), [_STAMP_KEY]], 0),
                    tf.concat([rows, [self._stamp.read_value()]], 0),
                )
            with tf.control_dependencies([made]):
                return tf.constant(True)

        return tf.cond(is_fresh, lambda: tf.constant(False), rebuild)

    def _rows_to_drop(self, step: Any) -> Any:
        """Returns the rows to drop, int64 [n], until nine tenths of the limit are left."""
        rows = tf.where(self.ids.read_value() >= 0)[:, 0]
        ids = self.ids.sparse_read(rows)
        seen = tf.cast(self.seen.sparse_read(rows), tf.int64)
        counts = tf.cast(self.counts.sparse_read(rows), tf.int64)
        # The id decides between equals, for its row depends on the order of requests.
        key = seen * 2**_TIE_BITS + _tie(ids)
        if self._order == "rarest":
            key += tf.minimum(counts, 2**_COUNT_BITS - 1) * 2 ** (_STEP_BITS + _TIE_BITS)
        wanted = tf.size(rows, out_type=tf.int64) - self._limit + max(1, self._limit // 10)
        if self._drop_after is not None:
            is_old = seen < step - self._drop_after
            key = tf.where(is_old, key - tf.int64.max // 2, key)
            wanted = tf.maximum(wanted, tf.reduce_sum(tf.cast(is_old, tf.int64)))
        may_go = seen < step - self._in_flight
        key = tf.where(may_go, key, _filled(key, tf.int64.max))
        wanted = tf.minimum(wanted, tf.reduce_sum(tf.cast(may_go, tf.int64)))
        first = tf.math.top_k(-key, tf.cast(wanted, tf.int32)).indices
        return tf.gather(rows, first)

    def _drop(self, rows: Any, step: Any) -> Any:
        """Frees rows, int64 [n], which count as used in the step; returns them afterwards."""
        ids = self.ids.sparse_read(rows)
        with tf.control_dependencies([rows]):
            num_free, stamp = self._num_free.read_value(), self._stamp.read_value()
        count = tf.size(rows, out_type=tf.int64)
        stamp = _next_stamp(stamp, ids)
        with tf.control_dependencies([ids, stamp, num_free]):
            noted = [
                scatter(self.ids, rows, _filled(rows, _NO_ID)),
                scatter(self._free, tf.range(num_free, num_free + count), rows),
                self._num_free.assign(num_free + count, read_value=False),
                self._stamp.assign(stamp, read_value=False),
                self._remove_from_hash(ids),
                self._insert_into_hash(
                    tf.constant([_STAMP_KEY], tf.int64), tf.expand_dims(stamp, 0)
                ),
            ]
            if step is not None:
                noted.append(scatter(self.seen, rows, _filled(rows, step)))
        with tf.control_dependencies(noted):
            return tf.identity(rows)

    def _insert_into_hash(self, keys: Any, values: Any) -> Any:
        return tf.raw_ops.LookupTableInsertV2(table_handle=self._hash, keys=keys, values=values)

    def _remove_from_hash(self, keys: Any) -> Any:
        return tf.raw_ops.LookupTableRemoveV2(table_handle=self._hash, keys=keys)


def scatter(variable: Any, rows: Any, values: Any) -> Any:
    """Returns an op that sets rows, int64 [n], of a variable to values [n, ...] in its dtype."""
    return tf.raw_ops.ResourceScatterUpdate(
        resource=variable.handle, indices=rows, updates=tf.cast(values, variable.dtype.base_dtype)
    )


def _unfolded(value: float) -> Any:
    """Returns a float64 scalar of which TensorFlow's rewriting makes no constant."""
    return tf.random.uniform([], value, value, tf.float64)


def _last_first(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
    """Returns all rows, from the last one to the first; int32."""
    del dtype, partition_info
    rows = tf.range(tf.cast(_unfolded(shape[0] - 1), tf.int32), -1, -1)
    rows.set_shape(shape)
    return rows


def filled_with(value: float) -> Callable[..., Any]:
    """Returns an initializer of one value in all places, which takes the memory of the result.

    TensorFlow makes a constant of other ones where it rewrites the graph, and the session keeps it.
    """

    def initializer(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        del partition_info
        filled = tf.fill(shape, tf.cast(_unfolded(value), dtype))
        filled.set_shape(shape)
        return filled

    return initializer


def _filled(like: Any, value: Any) -> Any:
    """Returns an int64 tensor of the shape of another one, with one value in all places."""
    return tf.fill(tf.shape(like), tf.cast(value, tf.int64))


def _tie(ids: Any) -> Any:
    high = tf.bitwise.right_shift(mixed(ids), tf.constant(64 - _TIE_BITS, tf.uint64))
    return tf.bitcast(high, tf.int64)


def _some(ids: Any, count: Any) -> Any:
    """Returns `count` of different ids, int64 [n], the same ones for any order of them."""
    key = tf.bitcast(tf.bitwise.right_shift(mixed(ids), tf.constant(1, tf.uint64)), tf.int64)
    return tf.gather(ids, tf.math.top_k(-key, tf.cast(count, tf.int32)).indices)


def _next_stamp(stamp: Any, ids: Any) -> Any:
    """Returns the stamp after a change of ids, of which there may be none: it tells which."""
    changes = tf.reduce_sum(tf.bitcast(mixed(ids), tf.int64))
    changed = tf.bitcast(mixed(stamp + changes, seed=1), tf.int64)
    return tf.where(tf.size(ids) > 0, changed, stamp)
