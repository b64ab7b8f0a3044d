"""`tf.contrib.training`: which parameter server gets a variable, for `replica_device_setter`."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf


class RandomStrategy:
    """Draws a task for each op.

    Args:
      num_ps_tasks: number of parameter servers.
      seed: of the draws.
    """

    def __init__(self, num_ps_tasks: int, seed: int = 0) -> None:
        self._num_tasks = num_ps_tasks
        self._random = random.Random(seed)

    def __call__(self, op: Any) -> int:
        """The task of an op."""
        del op
        return self._random.randrange(self._num_tasks)


class GreedyLoadBalancingStrategy:
    """Takes the task with the least load, the first where several have it.

    Args:
      num_tasks: number of parameter servers.
      load_fn: the load of an op, such as `byte_size_load_fn`.
    """

    def __init__(self, num_tasks: int, load_fn: Callable[[Any], float]) -> None:
        self._loads = np.zeros(num_tasks)
        self._load_fn = load_fn

    def __call__(self, op: Any) -> int:
        """The task of an op, whose load it has from now on."""
        task = int(np.argmin(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Any) -> int:
    """The bytes of the one output of an op.

    Raises:
      ValueError: for another number of outputs, or an unknown shape.
    """
    # Of a resource variable the output is its handle: the shape and type are attributes.
    if op.type == "VarHandleOp":
        shape, dtype = tf.TensorShape(op.get_attr("shape")), op.get_attr("dtype")
    else:
        if len(op.outputs) != 1:
            raise ValueError(f"op must have one output, got {len(op.outputs)} of {op.name}")
        shape, dtype = op.outputs[0].shape, op.outputs[0].dtype
    if not shape.is_fully_defined():
        raise ValueError(f"op must have a known shape, got {shape} of {op.name}")
    bytes_of_type: int = tf.as_dtype(dtype).size
    return bytes_of_type * int(np.prod(shape.as_list(), dtype=int))
