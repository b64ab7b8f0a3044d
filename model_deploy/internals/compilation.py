"""What XLA can compile; seen in TensorFlow 2.16 to 2.21."""

import functools
from collections.abc import Mapping, Sequence

import tensorflow.compat.v1 as tf
from tensorflow.python.framework import kernels
from tensorflow.python.util import pywrap_xla_ops


@functools.cache
def xla_kernels(op_type: str, device_type: str) -> Sequence[Mapping[str, frozenset[tf.DType]]]:
    """The kernels by which XLA compiles ops of a type.

    XLA's kernels are there once somebody has asked for their names.

    Wraps `kernels.get_registered_kernels_for_op` and `pywrap_xla_ops.get_cpu_kernel_names`.

    Args:
      op_type: such as `Conv2D`.
      device_type: `CPU` or `GPU`.

    Returns:
      For each kernel the types that it takes, by name of the op's attribute; without a name, of
      all types.  Empty if XLA does not know such ops.
    """
    pywrap_xla_ops.get_cpu_kernel_names()
    return [
        {
            constraint.name: frozenset(map(tf.as_dtype, constraint.allowed_values.list.type))
            for constraint in kernel.constraint
        }
        for kernel in kernels.get_registered_kernels_for_op(op_type).kernel
        if kernel.device_type == f"XLA_{device_type}_JIT" and not kernel.label
    ]
