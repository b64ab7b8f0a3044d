"""Variables that get the values of one process: at the start, and after a restore."""

import types
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import carrier
from model_deploy.horovod.operations import check_root, group


def broadcast_global_variables(root_rank: int) -> Any:
    """An op that gives all variables in `GLOBAL_VARIABLES` the values that they have in a process.

    Args:
      root_rank: of the process.

    Raises:
      ValueError: as `broadcast_variables`.
    """
    return broadcast_variables(tf.global_variables(), root_rank)


def broadcast_variables(variables: Sequence[Any], root_rank: int) -> Any:
    """An op that gives variables the values that they have in one process.

    All processes run it, after they have initialized or restored the variables.

    Args:
      variables: of numbers, of known shapes, the same everywhere.
      root_rank: of the process.

    Raises:
      ValueError: before `init`, for a `root_rank` that is not there, and for a variable of another
        type.
    """
    check_root(root_rank)
    variables = list(variables)
    collectives = group(f"broadcast of {root_rank}")
    if collectives.size == 1 or not variables:
        return tf.no_op(name="broadcast_variables")
    types_ = [carrier(variable.dtype, variable.name) for variable in variables]
    sent = [
        types.SimpleNamespace(name=variable.name, dtype=dtype, shape=variable.shape)
        for variable, dtype in zip(variables, types_, strict=True)
    ]
    values = [
        tf.cast(variable.read_value(), dtype)
        for variable, dtype in zip(variables, types_, strict=True)
    ]
    [received] = collectives.in_packs(
        [values], sent, lambda vectors, label: collectives.broadcast(vectors, label, root_rank)
    )
    assigned = [
        variable.assign(tf.cast(value, variable.dtype.base_dtype), read_value=False)
        for variable, value in zip(variables, received, strict=True)
    ]
    return tf.group(*assigned, name="broadcast_variables")


class BroadcastGlobalVariablesHook(tf.train.SessionRunHook):
    """Gives all variables the values of one process when a session has been made.

    The process may have restored them from a checkpoint that the others do not have.

    Args:
      root_rank: of the process.
      device: is not used: values travel from CPU to CPU.
    """

    def __init__(self, root_rank: int, device: str = "") -> None:
        del device
        self._root_rank = root_rank
        self.bcast_op: Any = None

    def begin(self) -> None:
        """Builds the op, once in a graph."""
        if self.bcast_op is None or self.bcast_op.graph is not tf.get_default_graph():
            self.bcast_op = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Runs the op; all processes do."""
        del coord
        session.run(self.bcast_op)
