"""The kernels that TensorFlow has for an op; seen in TensorFlow 2.16 to 2.21."""

import functools
from collections.abc import Collection, Mapping, Sequence

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels
from tensorflow.python.util import pywrap_xla_ops

# For each kernel: name of a type attribute -> the dtypes that the kernel accepts.
Kernels = Sequence[Mapping[str, frozenset[tf.DType]]]


@functools.cache
def gpu_kernels(op_type: str) -> Kernels | None:
    """Returns the kernels with which ops of a type run on a GPU.

    A TensorFlow built for GPUs, as its wheels for Linux on x86-64 are, knows them even without a
    GPU. Included are kernels whose operands, integers such as sizes, stay in CPU memory.

    Wraps `kernels.get_registered_kernels_for_op`.

    Args:
      op_type: such as `Conv2D`.

    Returns:
      For each kernel the accepted dtypes by name of the type attribute; a missing name accepts all.
      None if the op has no kernel on any device (a call of a function), or TensorFlow was built
      without GPUs.
    """
    if not _registered("MatMul", ("GPU",)) or not _registered(op_type, ("CPU", "GPU", "DEFAULT")):
        return None
    return _registered(op_type, ("GPU", "DEFAULT"))


@functools.cache
def xla_kernels(op_type: str, device_type: str) -> Kernels:
    """Returns the kernels by which XLA compiles ops of a type.

    XLA registers its kernels when their names are first asked for.

    Wraps `kernels.get_registered_kernels_for_op` and `pywrap_xla_ops.get_cpu_kernel_names`.

    Args:
      op_type: such as `Conv2D`.
      device_type: `CPU` or `GPU`.

    Returns:
      As `gpu_kernels`; empty if XLA has no kernel for the type.
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
