"""Which ops go to the CPU because TensorFlow has no GPU kernel for them.

The table of kernels is TensorFlow's own, of this process.  Soft placement would move these ops as
well, but silently, and together with all ops that they are colocated with; without soft placement a
session refuses them.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals, placement

# Types for a TensorFlow built without GPU kernels, whose graphs may still be sent to GPU servers.
_NEVER_ON_GPUS = ("Summary", "SummaryV2")

DeviceFunction = Callable[[Any], str]


def has_gpu_kernel(op: Any) -> bool:
    """Whether TensorFlow has a GPU kernel for an op, by its type and type attributes."""
    kernels = internals.gpu_kernels(op.type)
    if kernels is None:
        return not op.type.endswith(_NEVER_ON_GPUS)
    return any(
        all(_has_types(op, name, types) for name, types in kernel.items()) for kernel in kernels
    )


def placing(device: str) -> str | DeviceFunction:
    """Returns what `tf.device` needs to place ops: a GPU for ops with a kernel, its CPU for others.

    Parts of a device that inner scopes name are kept; an explicitly named GPU is kept for any op.

    >>> with tf.Graph().as_default() as graph, tf.device(placing("/job:worker/device:GPU:1")):
    ...     print(tf.add(1.0, 2.0).device, tf.summary.scalar("one", 1.0).device)
    /job:worker/device:GPU:1 /job:worker/device:CPU:0

    Args:
      device: such as `/job:worker/task:0/device:GPU:1`; a device that is no GPU is returned
        unchanged.
    """
    if not is_gpu(device):
        return device
    cpu = cpu_beside(device)

    def place(op: Any) -> str:
        names_one = tf.DeviceSpec.from_string(op.device or "").device_type is not None
        base = device if names_one or has_gpu_kernel(op) else cpu
        return placement.merge_devices(base, op.device)

    return place


def is_gpu(device: str) -> bool:
    """Whether a device name is that of a GPU."""
    return (tf.DeviceSpec.from_string(device).device_type or "").upper() == "GPU"


def cpu_beside(device: str) -> str:
    """Returns the first CPU of the process that has a device."""
    spec = tf.DeviceSpec.from_string(device).replace(device_type="CPU", device_index=0)
    return str(spec.to_string())


def _has_types(op: Any, name: str, types: frozenset[tf.DType]) -> bool:
    value = op.get_attr(name)
    return all(each in types for each in (value if isinstance(value, list) else [value]))
