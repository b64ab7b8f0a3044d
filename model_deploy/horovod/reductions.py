"""What becomes of the values of all processes, and in which type they travel."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf


class Reduction(enum.Enum):
    """What `allreduce` and `DistributedOptimizer` make of the values of all processes."""

    AVERAGE = "Average"
    SUM = "Sum"
    ADASUM = "Adasum"


Average, Sum, Adasum = Reduction


@dataclasses.dataclass(frozen=True)
class Compressor:
    """The type in which tensors of float32 travel.

    Sums are those of float32: what is rounded is each value that is sent, and the sum once.
    """

    wire_dtype: tf.DType

    def compress(self, tensor: Any) -> tuple[Any, tf.DType]:
        """A tensor, of any shape, as it travels, and the type that it had."""
        rounds = tensor.dtype.is_floating and self.wire_dtype != tf.float32
        return (tf.cast(tensor, self.wire_dtype) if rounds else tensor), tensor.dtype.base_dtype

    def decompress(self, tensor: Any, dtype: tf.DType) -> Any:
        """A tensor, of any shape, in the type that it had before `compress`."""
        return tf.cast(tensor, dtype)


class Compression:
    """Ways to send gradients: `none`, and `fp16`."""

    none = Compressor(tf.float32)
    fp16 = Compressor(tf.float16)


def reduction_of(op: object, average: object = None) -> Reduction:
    """The reduction that two arguments of Horovod name, of which one at most is given.

    Raises:
      ValueError: if both are given, or `op` is none of the three.
    """
    if average is not None:
        if op is not None:
            raise ValueError(f"op must be None where average is given, got {op} and {average!r}")
        return Average if average else Sum
    if op is None:
        return Average
    if not isinstance(op, Reduction):
        raise ValueError(f"op must be hvd.Average, hvd.Sum or hvd.Adasum, got {op!r}")
    return op


def check_compression(compression: object) -> Compressor:
    """Returns the argument `compression`.

    Raises:
      ValueError: if it is another one.
    """
    if not isinstance(compression, Compressor):
        raise ValueError(f"compression must be hvd.Compression.none or .fp16, got {compression!r}")
    return compression


def adasum(values: Sequence[Any]) -> Any:
    """Tensors of one shape added up in pairs, and these in pairs, less what two have in common.

    Of two it is `(1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b`: the sum where they are orthogonal,
    the mean where they are equal (Maleki et al. 2020, https://arxiv.org/abs/2006.02924).

    Raises:
      ValueError: if their number is no power of two.
    """
    if len(values) & (len(values) - 1):
        raise ValueError(f"size must be a power of two for hvd.Adasum, got {len(values)}")
    while len(values) > 1:
        values = [_of_two(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _of_two(a: Any, b: Any) -> Any:
    product = tf.reduce_sum(a * b)

    def rest(x: Any) -> Any:
        return 1 - tf.math.divide_no_nan(product, 2 * tf.reduce_sum(x * x))

    return rest(a) * a + rest(b) * b
