"""Where a graph reads the rows of a table, and how these reads come to give current rows."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from absl import logging

from model_deploy import graph_walk, internals
from model_deploy.gradients import GradientAndVariable, values_of
from model_deploy.optimization.layerwise import beside

# The graph's gathers that give current rows already, or are there for that.  Not a string, see
# `hooks.py`.
_KNOWN = ("model_deploy", "current_gathers")
_GATHERS = ("ResourceGather", "Gather", "GatherV2")
_SHAPES = ("Shape", "ShapeN", "Size", "VariableShape")
_HANDS_ON = ("ReadVariableOp", "Identity")


def gathers_of_tables(
    pairs: Sequence[GradientAndVariable], is_known: Callable[[Any], bool | None]
) -> dict[str, list[Any]]:
    """Returns the tables that can be trained by rows, by name, with their gathers.

    Reads the collections `LOSSES` and `REGULARIZATION_LOSSES`, for what is trained.

    Args:
      pairs: `(gradient, variable)` pairs; a gradient is None or has any shape.
      is_known: says of a variable whether it is trained by rows, and None if it is new.

    Returns:
      For each table the gathers of its rows that do not give current rows yet.

    Raises:
      ValueError: if one that is trained by rows is read otherwise.
    """
    needed = _needed(pairs)
    found = {}
    for gradient, variable in pairs:
        known = is_known(variable)
        if gradient is None or known is False:
            continue
        gathers, others = _reads(variable, needed)
        if known and others:
            raise ValueError(
                f"{variable.op.name} is trained by rows, so its rows must be gathered outside of "
                f"loops and conditions, got {others[0].type} {others[0].name}"
            )
        if known or (_is_table(gradient, variable) and not others):
            found[variable.op.name] = gathers
        elif gathers or isinstance(gradient, tf.IndexedSlices):
            name = variable.op.name
            logging.warning(
                "%s is trained as a whole, not by rows: %s", name, _reason(gradient, others)
            )
    return found


def give_current_rows(gather: Any, variable: Any, current: Callable[[Any], Any]) -> None:
    """Makes all ops that take gathered rows take current ones.

    Args:
      gather: the op that gathers.
      variable: the table.
      current: returns the current rows, [*ids.shape, ...], of ids.
    """
    [gathered] = gather.outputs
    uses = [
        (index, op)
        for op in dict.fromkeys(gathered.consumers())
        for index, taken in enumerate(op.inputs)
        if taken is gathered and op.type not in _SHAPES
    ]
    if uses:
        ids = gather.inputs[1]
        with tf.control_dependencies(None), beside(variable), tf.name_scope(f"{gather.name}/"):
            if internals.is_resource_variable(variable) and gather.type != "ResourceGather":
                # Keras gathers from the whole value, which TensorFlow copies for that.
                gathered = tf.gather(variable, ids)
            rows = with_gradient_of(gathered, current(ids))
        for index, op in uses:
            internals.replace_input(op, index, rows)
    tf.add_to_collection(_KNOWN, gather)


def with_gradient_of(gathered: Any, current: Any) -> Any:
    """Returns `current`, whose gradient goes to what was gathered; both of one shape."""
    return gathered + tf.stop_gradient(current - gathered)


class own_gathers:  # noqa: N801 - used as a function, in `with`
    """`with own_gathers():` gathers in the block are there to compute current rows."""

    def __enter__(self) -> None:
        self._new = graph_walk.new_ops()
        self._ops = self._new.__enter__()

    def __exit__(self, *error: object) -> None:
        self._new.__exit__(*error)
        for op in self._ops:
            if op.type in _GATHERS:
                tf.add_to_collection(_KNOWN, op)


def _reason(gradient: Any, others: Sequence[Any]) -> str:
    if others:
        return f"{others[0].name} reads it"
    is_sparse = isinstance(gradient, tf.IndexedSlices)
    return "its shape is unknown" if is_sparse else "its gradient is dense"


def _is_table(gradient: Any, variable: Any) -> bool:
    return isinstance(gradient, tf.IndexedSlices) and variable.shape.is_fully_defined()


def _needed(pairs: Sequence[GradientAndVariable]) -> set[Any]:
    """The ops that the gradients and losses need."""
    sparse = [g.indices for g, _ in pairs if isinstance(g, tf.IndexedSlices)]
    losses = [
        *tf.get_collection(tf.GraphKeys.LOSSES),
        *tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES),
    ]
    return graph_walk.ancestors(each.op for each in [*values_of(pairs), *sparse, *losses])


def _reads(variable: Any, needed: set[Any]) -> tuple[list[Any], list[Any]]:
    """The gathers of a table's rows that are not known, and other needed ops that read it."""
    known = set(tf.get_collection(_KNOWN))
    gathers, others = [], []
    for op, tensor in _readers(variable.op.outputs[0]):
        if op in known:
            continue
        if _is_gather(op, tensor) and not internals.in_old_control_flow(op):
            gathers.append(op)
        elif op in needed and op.type not in _SHAPES:
            others.append(op)
    return gathers, others


def _readers(tensor: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the ops that take a variable or its whole value, and which tensor they take."""
    for op in dict.fromkeys(tensor.consumers()):
        if op.type in _HANDS_ON:
            yield from _readers(op.outputs[0])
        else:
            yield op, tensor


def _is_gather(op: Any, tensor: Any) -> bool:
    """Whether an op gathers rows of a tensor."""
    if op.type not in _GATHERS or op.inputs[0] is not tensor:
        return False
    if op.type != "Gather" and op.get_attr("batch_dims") != 0:
        return False
    return op.type != "GatherV2" or tf.get_static_value(op.inputs[2]) == 0
