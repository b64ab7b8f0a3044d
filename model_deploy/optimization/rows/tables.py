"""`Table`: a variable that is trained by rows, with its slots: rows, and the whole, as of now."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.optimization.layerwise import beside
from model_deploy.optimization.rows.history import History, gather

# The graph's tables.  Not a string, see `hooks.py`.
_TABLES = ("model_deploy", "row_tables")
# Values of a table that are brought up to date at a time, for a checkpoint or for `current`.
_PART = 1 << 22


class Table:
    """A table with its slots.

    Args:
      variable: the table, of at least one axis.
      slots: variables of its shape.
      last: int64 variable, [rows]: the step up to which a row is current.
      history: what rows have missed.
      rest: function of rows, their slots, numbers of the history and missed steps; returns rows
        and slots as they are after these steps.
    """

    def __init__(
        self,
        variable: Any,
        slots: Sequence[Any],
        last: Any,
        history: History,
        rest: Callable[..., tuple[Any, list[Any]]],
    ) -> None:
        self.variable = variable
        self.slots = slots
        self.last = last
        self.history = history
        self._rest = rest

    def rested(self, rows: Any) -> tuple[Any, list[Any]]:
        """Returns rows and their slots as they are now, in float32 or float64.

        Args:
          rows: integers of any shape.
        """
        last = gather(self.last, rows)
        missed = tf.maximum(self.history.steps.read_value() - last, 0)
        value, *slots = (_wide(gather(each, rows)) for each in (self.variable, *self.slots))
        return self._rest(value, slots, self.history.of_rows(last), missed)

    def value_of_rows(self, rows: Any) -> Any:
        """Returns rows of the table as they are now, [*rows.shape, ...] in its dtype.

        It is computed on the table's device; nothing is changed.
        """
        with beside(self.variable), tf.name_scope("current_rows"):
            return tf.cast(self.rested(rows)[0], self.variable.dtype.base_dtype)

    def set_rows(self, rows: Any, value: Any, slots: Sequence[Any]) -> tf.Operation:
        """Returns an op that sets rows, int64 [n], and their slots, as current after this step."""
        last = tf.fill(tf.shape(rows), self.history.steps.read_value() + 1)
        variables = (self.variable, *self.slots, self.last)
        with tf.control_dependencies([value, *slots]):  # until then the rows are read
            changed = [
                tf.scatter_update(variable, rows, tf.cast(new, variable.dtype.base_dtype))
                for variable, new in zip(variables, (value, *slots, last), strict=True)
            ]
        return tf.group(*changed)

    def whole(self, variable: Any) -> Any:
        """Returns all of the table, or of one of its slots or `last`, as it is now."""
        with beside(self.variable), tf.control_dependencies(None), tf.name_scope("current"):
            if variable is self.last:
                return tf.fill(self.last.shape.as_list(), self.history.steps.read_value())
        place = [self.variable, *self.slots].index(variable)

        def part(rows: Any) -> Any:
            value, slots = self.rested(rows)
            return tf.cast([value, *slots][place], variable.dtype.base_dtype)

        with tf.control_dependencies(None), tf.device(self.variable.device):
            return _in_parts(part, variable)

    def holds(self, variable: Any) -> bool:
        """Whether a variable is the table or one of its slots that have rows."""
        return any(variable is each for each in (self.variable, *self.slots, self.last))


def note_table(table: Table) -> None:
    """Adds a table to the graph's collection of tables, unless it is there.

    Raises:
      ValueError: if it is there with slots of another optimizer.
    """
    for each in tf.get_collection(_TABLES):
        if each.variable is table.variable:
            if each.last is not table.last:
                raise ValueError(
                    f"{table.variable.op.name} must be trained by one optimizer, as its rows are "
                    f"read with what they have missed, got {each.last.op.name} and "
                    f"{table.last.op.name} of two"
                )
            return
    tf.add_to_collection(_TABLES, table)


def has_tables() -> bool:
    """Whether the graph has tables that are trained by rows.  Reads the collection of tables."""
    return bool(tf.get_collection(_TABLES))


def current_value(variable: Any) -> Any:
    """Returns a table, or its slot, as the dense optimizer has it now, for a checkpoint.

    Reads the collection of tables.

    Args:
      variable: any variable.

    Returns:
      A tensor of the variable's shape and dtype; None for a variable that has no such rows.
    """
    for table in tf.get_collection(_TABLES):
        if table.holds(variable):
            return table.whole(variable)
    return None


def _wide(tensor: Any) -> Any:
    return tensor if tensor.dtype == tf.float64 else tf.cast(tensor, tf.float32)


def _in_parts(function: Callable[[Any], Any], like: Any) -> Any:
    """Returns `function(rows)` of all rows of a variable, of many values part by part."""
    num_rows, *others = like.shape.as_list()
    each = max(1, _PART // max(1, like.shape.num_elements() // max(1, num_rows)))
    if num_rows <= each:
        return function(tf.range(num_rows))
    parts = tf.TensorArray(
        like.dtype.base_dtype,
        -(-num_rows // each),
        infer_shape=False,
        element_shape=[None, *others],
    )

    def body(i: Any, parts: Any) -> Any:
        rows = tf.range(i * each, tf.minimum((i + 1) * each, num_rows))
        return i + 1, parts.write(i, function(rows))

    _, parts = tf.while_loop(
        lambda i, _: i * each < num_rows, body, (tf.constant(0), parts), parallel_iterations=1
    )
    whole = parts.concat()
    whole.set_shape(like.shape)
    return whole
