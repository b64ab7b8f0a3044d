"""Chooses the ps task of each variable, round robin or balanced by bytes."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf

# A separate message costs more than so many bytes.
SMALL_BYTES = 1 << 16


def is_variable_op(op: Any) -> bool:
    """Whether an op (or a `NodeDef`) holds a reference or resource variable.

    `Variable` and `VariableV2` are reference variables; `VarHandleOp` is a resource variable,
    TensorFlow's default today.
    """
    op_type = op.op if isinstance(op, tf.NodeDef) else op.type
    return op_type in ("Variable", "VariableV2", "VarHandleOp")


def merge_devices(base: str, override: str) -> str:
    """Returns the device `base` with the parts that `override` names replaced.

    >>> merge_devices("/job:ps/task:1/device:CPU:0", "/device:GPU:2")
    '/job:ps/task:1/device:GPU:2'
    """
    if not override:
        return base
    spec = tf.DeviceSpec.from_string(base)
    return str(spec.make_merged_spec(tf.DeviceSpec.from_string(override)).to_string())


def tensor_bytes(shape: tf.TensorShape, dtype: tf.DType) -> int | None:
    """Returns the bytes of a tensor; None if a dimension is unknown.

    >>> tensor_bytes(tf.TensorShape([3, 5]), tf.float32)
    60
    """
    if not shape.is_fully_defined():
        return None
    return int(shape.num_elements() * dtype.base_dtype.size)


def variable_bytes(op: Any) -> int:
    """Returns the bytes of the variable of an op (or a `NodeDef`); 0 for an unknown shape."""
    node_def = op if isinstance(op, tf.NodeDef) else op.node_def
    shape = tf.TensorShape(node_def.attr["shape"].shape)
    return tensor_bytes(shape, tf.as_dtype(node_def.attr["dtype"].type)) or 0


class LeastBytes:
    """Chooses a place for each variable: the place that holds the fewest bytes so far.

    >>> least = LeastBytes(["/device:GPU:0", "/device:GPU:1"])
    >>> [least.choose(size) for size in (12, 8, 4, 4)]
    ['/device:GPU:0', '/device:GPU:1', '/device:GPU:1', '/device:GPU:0']

    >>> least = LeastBytes(["/job:ps/task:0", "/job:ps/task:1"], beside=5)
    >>> [least.choose(size) for size in (12, 4, 8, 4, 4)]
    ['/job:ps/task:0', '/job:ps/task:0', '/job:ps/task:1', '/job:ps/task:1', '/job:ps/task:1']

    Args:
      places: names of the places; of several with the fewest bytes the first is chosen.
      beside: variables of fewer bytes than these, in all, follow a variable to its place, whatever
        that holds; places that differ by less count as even.
    """

    def __init__(self, places: Sequence[str], beside: int = 0) -> None:
        self._bytes = dict.fromkeys(places, 0)
        self._beside = beside
        self._left, self._place = 0, ""  # what may follow, and where to

    def choose(self, size: int) -> str:
        """Returns the place for a variable of `size` bytes."""
        if size < self._left:
            self._left -= size
        else:
            unit = max(1, self._beside)
            self._place = min(self._bytes, key=lambda place: self._bytes[place] // unit)
            self._left = self._beside
        self._bytes[self._place] += size
        return self._place

    def __call__(self, variable: Any) -> str:
        """Returns the place for a tensor with the variable's shape and dtype."""
        return self.choose(tensor_bytes(variable.shape, variable.dtype) or 0)


class PsDeviceChooser:
    """A device function that spreads variables over ps tasks.

    Use it as `tf.device(chooser)` or as the `device` of a slim variable.  An op
    that is not a variable, or whose device already names a job, is left as it is.

    Args:
      ps_device: device of the ps job, such as `/job:ps`.
      num_tasks: number of tasks of the ps job.
      strategy: `round_robin` takes the tasks in turn; `balanced` takes the task that holds the
        fewest bytes so far, the lowest task of several, and places less than `SMALL_BYTES` of
        variables beside the one before them: a bias with its weights, so that a task whose bytes
        are not worth a message takes no part in a step.
    """

    def __init__(self, ps_device: str, num_tasks: int, strategy: str) -> None:
        tasks = [f"{ps_device}/task:{task}/device:CPU:0" for task in range(num_tasks)]
        self._least = LeastBytes(tasks, SMALL_BYTES) if strategy == "balanced" else None
        self._in_turn = itertools.cycle(tasks)

    def __call__(self, op: Any) -> str:
        device = str(op.device or "")
        if not is_variable_op(op) or tf.DeviceSpec.from_string(device).job is not None:
            return device
        task = self._least.choose(variable_bytes(op)) if self._least else next(self._in_turn)
        return merge_devices(task, device)


def even_partitioner(num_parts: int, min_bytes: int) -> Callable[..., list[int]]:
    """Returns a variable partitioner that cuts big variables into `num_parts` equal parts.

    With `balanced` placement each part of more than `SMALL_BYTES` goes to a different task, so the
    fullest task exceeds the mean by at most about one variable that was too small to cut.

    Args:
      num_parts: into how many parts; fewer where the longest axis is shorter.
      min_bytes: variables smaller than this stay whole.

    Returns:
      A function `(shape, dtype) -> parts per axis`, as `tf.variable_scope` and slim layers take
      it.  The longest axis is cut; of several longest axes the last.
    """

    def partition(shape: tf.TensorShape, dtype: tf.DType) -> list[int]:
        sizes = shape.as_list()
        parts = [1] * len(sizes)
        size = tensor_bytes(shape, dtype)
        if parts and size is not None and size >= min_bytes:
            axis = max(range(len(sizes)), key=lambda i: (sizes[i], i))
            length = sizes[axis]
            part_length = math.ceil(length / min(num_parts, length))
            parts[axis] = math.ceil(length / part_length)
        return parts

    return partition
