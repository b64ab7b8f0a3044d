"""`RowOptimizer`: base of optimizers whose steps cost their rows, and that equal dense ones."""

import functools
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.optimization.layerwise import beside
from model_deploy.optimization.rows import reading
from model_deploy.optimization.rows.history import STEPS_KEPT, History
from model_deploy.optimization.rows.tables import Table, note_table

_LAST = "last"


class Rest(NamedTuple):
    """What rows have missed.

    Attributes:
      numbers: of the history, each of the rows' shape with further axes of 1.
      steps: how many steps, float64 of the same shape.
    """

    numbers: Sequence[Any]
    steps: Any


class RowOptimizer(tf.train.Optimizer):
    """A mixin for an optimizer of TensorFlow, whose tables then cost the rows of a step only.

    Each row of a table remembers the last step that changed it.  What it has missed since then,
    steps with gradient 0, is made up for

    - when it is read: each gather of the table in the graph that is there when gradients are
      applied gives the rows as the dense optimizer has them;
    - when it gets a gradient;
    - in turn, a part of the table in each step, as so many steps are remembered only.

    A table is a variable with a sparse gradient, of which the losses gather rows outside of loops
    and conditions.  Other variables are trained as by the dense optimizer; a sparse gradient is
    made dense where it must be, and a line in the log names the variable.

    A subclass comes before TensorFlow's optimizer among the bases of a class, and has
    `_slots_of_rows`, `_fresh`, `_add_step`, `_rested` and `_stepped`.
    """

    # Names of the slots that have rows.
    _slots_of_rows: Sequence[str] = ()
    # The variables that the call of `apply_gradients` trains by rows.
    _by_rows: Sequence[Any] = ()

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Makes a step, and makes the graph's gathers of the tables give rows as they are now.

        Adds to the collection of tables, see `tables`.  Gathers that are built later, and a gather
        itself where it is fetched by a session, give the rows as they were last changed: take
        `rows`.

        Args:
          grads_and_vars: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
            `IndexedSlices` over its rows, or None.
          global_step: an integer scalar variable to increment; or None.
          name: name of the op.

        Raises:
          ValueError: if a table that is trained by rows is read otherwise by a later step, or is
            trained by another optimizer.
        """
        pairs = list(grads_and_vars)
        gathers = reading.gathers_of_tables(pairs, self._is_known)
        self._by_rows = [variable for _, variable in pairs if variable.op.name in gathers]
        with reading.own_gathers():
            applied = super().apply_gradients(pairs, global_step, name)
            for variable in self._by_rows:
                table = self._table(variable)
                note_table(table)
                for each in gathers[variable.op.name]:
                    reading.give_current_rows(each, variable, table.value_of_rows)
        return applied

    def current(self, table: Any) -> Any:
        """Returns the whole of a variable as the dense optimizer would have it now.

        It is computed part by part, on the table's device; call it after `apply_gradients`.

        Args:
          table: a variable that this optimizer trains.

        Returns:
          A tensor of its shape and dtype.
        """
        if not self._has_rows(table):
            return table.read_value()
        return self._table(table).whole(table)

    def rows(self, table: Any, ids: Any) -> Any:
        """Returns rows of a variable as the dense optimizer would have them now.

        The gradient is that of a gather.  Call it after `apply_gradients`, for look-ups that are
        built later; those that were there are made to give such rows already.

        Args:
          table: a variable that this optimizer trains.
          ids: integers of any shape.

        Returns:
          A tensor of shape [*ids.shape, *table.shape[1:]].
        """
        if not self._has_rows(table):
            return tf.gather(table, ids)
        with tf.control_dependencies(None), reading.own_gathers():
            current = self._table(table).value_of_rows(ids)
            return reading.with_gradient_of(tf.gather(table, ids), current)

    # What a subclass has to say.

    def _fresh(self, variable: Any) -> Sequence[float]:
        """The numbers in the history of a row that has missed nothing."""
        raise NotImplementedError

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        """Adds the step that is made to the history."""
        raise NotImplementedError

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        """Returns rows, and their slots, after steps with gradient 0."""
        raise NotImplementedError

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        """Returns rows of a variable, and their slots, after a step with a gradient of them."""
        raise NotImplementedError

    def _apply_to_all(self, gradient: Any, variable: Any, rows: Any) -> Any:
        """Applies a sparse gradient to a variable that is not trained by rows."""
        dense = tf.math.unsorted_segment_sum(gradient, rows, variable.shape.as_list()[0])
        if internals.is_resource_variable(variable):
            return super()._resource_apply_dense(dense, variable)
        return super()._apply_dense(dense, variable)

    # Variables of tables.

    def _create_slots(self, var_list: Any) -> None:
        super()._create_slots(var_list)
        for variable in self._by_rows:
            self._create_table(variable)

    def _create_table(self, variable: Any) -> None:
        rows = tf.TensorShape(variable.shape.as_list()[:1])
        name = f"{self._name}/{_LAST}"
        zeros = tf.zeros_initializer(tf.int64)
        self._get_or_make_slot_with_initializer(variable, zeros, rows, tf.int64, _LAST, name)
        fresh = np.array(self._fresh(variable), np.float64)
        with tf.name_scope(None):
            for initial, kind in (
                (lambda: tf.tile(tf.constant(fresh)[tf.newaxis], [STEPS_KEPT, 1]), "history"),
                (lambda: tf.zeros([], tf.int64), "steps"),
            ):
                self._create_non_slot_variable(initial, self._name_of(variable, kind), variable)

    def _name_of(self, variable: Any, kind: str) -> str:
        return f"{variable.op.name}/{self._name}/{kind}"

    def _has_rows(self, variable: Any) -> bool:
        return self.get_slot(variable, _LAST) is not None

    def _is_known(self, variable: Any) -> bool | None:
        """Whether a variable is trained by rows; None before its first step is built."""
        if self._has_rows(variable):
            return True
        known = self.get_slot(variable, self._slots_of_rows[0]) is not None
        return False if known else None

    def _table(self, variable: Any) -> Table:
        graph = tf.get_default_graph()
        history, steps = (
            self._get_non_slot_variable(self._name_of(variable, kind), graph)
            for kind in ("history", "steps")
        )
        return Table(
            variable,
            [self.get_slot(variable, name) for name in self._slots_of_rows],
            self.get_slot(variable, _LAST),
            History(history, steps, self._fresh(variable)),
            functools.partial(self._rest, variable.shape.rank - 1),
        )

    # A step.

    def _rest(
        self, axes: int, value: Any, slots: Sequence[Any], of_rows: Any, steps: Any
    ) -> tuple[Any, list[Any]]:
        """`_rested` of rows of so many axes; of each [..., numbers], and [...] missed steps."""

        def beside_rows(each: Any) -> Any:
            for _ in range(axes):
                each = tf.expand_dims(each, -1)
            return each

        each = [beside_rows(tf.cast(n, value.dtype)) for n in tf.unstack(of_rows, axis=-1)]
        return self._rested(value, slots, Rest(each, beside_rows(tf.cast(steps, tf.float64))))

    def _change_rows(self, gradient: Any, variable: Any, rows: Any) -> tf.Operation:
        """Makes a step of some rows, and of those whose turn it is, with gradient 0."""
        table = self._table(variable)
        rows = tf.cast(rows, tf.int64)
        due = table.history.due_rows(variable.shape.as_list()[0])
        touched, places = tf.unique(tf.concat([rows, due], axis=0))
        summed = tf.math.unsorted_segment_sum(gradient, places[: tf.size(rows)], tf.size(touched))
        value, slots = table.rested(touched)
        stepped = self._stepped(variable, value, slots, tf.cast(summed, value.dtype))
        return table.set_rows(touched, *stepped)

    def _change(self, gradient: Any, variable: Any, rows: Any) -> Any:
        if not self._has_rows(variable):
            return self._apply_to_all(gradient, variable, rows)
        return self._change_rows(gradient, variable, rows)

    def _finish(self, update_ops: Any, name_scope: Any) -> Any:
        added = []
        for variable in self._by_rows:
            with tf.control_dependencies(update_ops), beside(variable):
                added.append(self._add_step(variable, self._table(variable).history))
        return super()._finish([*update_ops, *added], name_scope)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._change(grad.values, var, grad.indices)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._change(grad, handle, indices)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        if not self._has_rows(var):
            return super()._apply_dense(grad, var)
        return self._change_rows(grad, var, tf.range(var.shape.as_list()[0]))

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        if not self._has_rows(handle):
            return super()._resource_apply_dense(grad, handle)
        return self._change_rows(grad, handle, tf.range(handle.shape.as_list()[0]))


def number(field: str, value: Any) -> float:
    """Returns an argument of an optimizer that must be a number.

    Raises:
      ValueError: naming the field and the value.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{field} must be a number, for rows to rest by it, got {value!r}")
    return float(value)


def faded(slot: Any, decay: float, rest: Rest) -> Any:
    """Returns rows of a slot after the missed steps, each of which multiplies it by `decay`."""
    return slot * tf.cast(tf.pow(tf.constant(decay, tf.float64), rest.steps), slot.dtype)
