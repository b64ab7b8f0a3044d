"""Ops that run after an update and see the new values of variables."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals


def ops_after(updates: Sequence[Any], functions: Iterable[Callable[[], Any]]) -> list[Any]:
    """Calls functions that make ops, and makes these ops run after `updates`.

    The ops see variables as they are after the updates.  For resource variables control
    dependencies do.  All uses of a reference variable share one read op, made with the variable,
    which may run before the update; here the new ops get new reads.

    Reads the collections `GLOBAL_VARIABLES` and `LOCAL_VARIABLES`.

    Args:
      updates: ops that change variables.
      functions: called without arguments; each returns an op.

    Returns:
      The ops that the functions returned.
    """
    with tf.control_dependencies(updates), graph_walk.new_ops() as ops:
        made = [make_op() for make_op in functions]
    if ops:
        _read_anew(ops, updates)
    return made


def _read_anew(ops: Sequence[Any], updates: Sequence[Any]) -> None:
    """Replaces, in the inputs of `ops`, the shared reads of reference variables by new reads."""
    variables = [*tf.global_variables(), *tf.local_variables()]
    shared = {v.value().name: v for v in variables if not internals.is_resource_variable(v)}
    if not shared:
        return
    # Initial values are no part of the step: they are computed before it.
    once = graph_walk.ancestors(variable.initializer for variable in variables)
    fresh: dict[str, Any] = {}
    for op in ops:
        if op in once:
            continue
        for index, tensor in enumerate(op.inputs):
            if tensor.name in shared:
                if tensor.name not in fresh:
                    variable = shared[tensor.name]
                    with tf.control_dependencies(updates), tf.device(variable.device):
                        fresh[tensor.name] = variable.read_value()
                internals.replace_input(op, index, fresh[tensor.name])
