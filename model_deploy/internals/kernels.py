"""Which kernels TensorFlow has for an op; seen in TensorFlow 2.16 to 2.21."""

import functools
from collections.abc import Collection, Mapping, Sequence

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels
from tensorflow.python.util import pywrap_xla_ops

# The types that the kernels of an op take, by name of the op's attribute.
Kernels = Sequence[Mapping[str, frozenset[tf.DType]]]


@functools.cache
def gpu_kernels(op_type: str) -> Kernels | None:
    """The kernels with which ops of a type run on a GPU.

    TensorFlow knows of them without a GPU, too, if it was built for GPUs, as its wheels for Linux
    on x86-64 are.  Some keep what they take in the memory of the CPU: they are for integers that
    say how large something is.

    Wraps `kernels.get_registered_kernels_for_op`.

    Args:
      op_type: such as `Conv2D`.

    Returns:
      For each kernel the types that it takes, by name of the op's attribute; without a name, of
      all types.  None if the op has no kernel for any device, as a function that is called by its
      name, or the kernels are those of a TensorFlow without GPUs.
    """
    if not _registered("MatMul", ("GPU",)) or not _registered(op_type, ("CPU", "GPU", "DEFAULT")):
        return None
    return _registered(op_type, ("GPU", "DEFAULT"))


@functools.cache
def xla_kernels(op_type: str, device_type: str) -> Kernels:
    """The kernels by which XLA compiles ops of a type.

    XLA's kernels are there once somebody has asked for their names.

    Wraps `kernels.get_registered_kernels_for_op` and `pywrap_xla_ops.get_cpu_kernel_names`.

    Args:
      op_type: such as `Conv2D`.
      device_type: `CPU` or `GPU`.

    Returns:
      As `gpu_kernels`; empty if XLA does not know such ops.
    """
    pywrap_xla_ops.get_cpu_kernel_names()
    return _registered(op_type, (f"XLA_{device_type}_JIT",))


def _registered(op_type: str, device_types: Collection[str]) -> Kernels:
    return [
        {
            constraint.name: frozenset(map(tf.as_dtype, constraint.allowed_values.list.type))
            for constraint in kernel.constraint
        }
        for kernel in kernels.get_registered_kernels_for_op(op_type).kernel
        if kernel.device_type in device_types and not kernel.label
    ]
