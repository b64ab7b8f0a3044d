"""`KeptValues`: the variables of a step as they were before it, beside those that it changes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

# Bytes of an element -> the integers that have its bits.
_INTEGERS = {1: tf.int8, 2: tf.int16, 4: tf.int32, 8: tf.int64, 16: tf.int64}


class Difference(NamedTuple):
    """A variable with two values.

    Attributes:
      name: name of the variable.
      device: device of the variable.
      elements: how many of its elements differ.
      bits: how many of their bits.
      size: how many elements it has.
    """

    name: str
    device: str
    elements: int
    bits: int
    size: int


class _Pair(NamedTuple):
    """A variable's op and the handle of what is kept of it."""

    variable: Any
    handle: Any


class KeptValues:
    """Keeps the values of variables on their devices; adds ops to the default graph.

    What is kept is in no collection, and so neither initialized nor saved.  Of a resource variable
    that is kept no value is copied: the next change of it makes a new one.

    Args:
      variables: ops of variables.

    Attributes:
      keep: an op that keeps the present values.
      swap: an op that swaps the present and the kept values.
      elements: how many elements of each variable differ from what is kept, int64 [variables].
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        pairs = [_Pair(op, _handle(op)) for op in variables]
        self._variables = list(variables)
        with tf.name_scope("verification"):
            self.keep = tf.group(*(_assign_kept(pair, _read(pair)) for pair in pairs))
            self.swap = tf.group(*(op for pair in pairs for op in _swapped(pair)))
            self._values = [(_read(pair), _read_kept(pair)) for pair in pairs]
            counts = [_differing(*values) for values in self._values]
            self.elements = tf.stack(counts) if counts else tf.zeros([0], tf.int64)

    def differences(self, session: Any) -> list[Difference]:
        """Returns the variables that differ from what is kept."""
        counts = session.run(self.elements)
        found = []
        for op, values, elements in zip(
            self._variables, self._values, counts.tolist(), strict=True
        ):
            if elements:
                now, kept = session.run(values)
                both = (np.frombuffer(value.tobytes(), np.uint8) for value in (now, kept))
                bits = int(np.unpackbits(np.bitwise_xor(*both)).sum())
                found.append(Difference(op.name, op.device, elements, bits, now.size))
        return found


def _dtype(op: Any) -> Any:
    return tf.as_dtype(op.get_attr("dtype"))


def _handle(op: Any) -> Any:
    """Returns the handle of a new variable like that of an op, on its device."""
    dtype = _dtype(op)
    if not (dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex):
        raise ValueError(
            "verify_every_n_steps must be None where a step changes variables that are no "
            f"numbers, got {op.name} of {dtype.name}"
        )
    with tf.device(op.device), tf.name_scope(None):
        return tf.raw_ops.VarHandleOp(
            dtype=dtype,
            shape=tf.TensorShape(op.get_attr("shape")),
            shared_name=f"verification/{op.name}",
            name="verification/kept",
        )


def _read(pair: _Pair) -> Any:
    """Reads a variable; of a reference variable a copy, as its memory changes with it."""
    op = pair.variable
    with tf.device(op.device):
        if op.outputs[0].dtype == tf.resource:
            return tf.raw_ops.ReadVariableOp(resource=op.outputs[0], dtype=_dtype(op))
        return tf.raw_ops.DeepCopy(x=tf.identity(op.outputs[0]))


def _read_kept(pair: _Pair) -> Any:
    with tf.device(pair.variable.device):
        return tf.raw_ops.ReadVariableOp(resource=pair.handle, dtype=_dtype(pair.variable))


def _assign_kept(pair: _Pair, value: Any) -> Any:
    with tf.device(pair.variable.device):
        return tf.raw_ops.AssignVariableOp(resource=pair.handle, value=value)


def _swapped(pair: _Pair) -> list[Any]:
    """Returns ops that swap the two values of a variable."""
    op = pair.variable
    now, kept = _read(pair), _read_kept(pair)
    with tf.device(op.device), tf.control_dependencies([now, kept]):
        if op.outputs[0].dtype == tf.resource:
            assigned = tf.raw_ops.AssignVariableOp(resource=op.outputs[0], value=kept)
        else:
            assigned = tf.raw_ops.Assign(ref=op.outputs[0], value=kept).op
        return [assigned, _assign_kept(pair, now)]


def _differing(now: Any, kept: Any) -> Any:
    """Returns how many elements differ in a bit, an int64 scalar on the variable's device."""
    with tf.device(kept.device):
        # Not `not_equal`, which GPUs leave to the CPU for some integers.
        differing = tf.bitwise.bitwise_xor(_bits(now), _bits(kept))
        return tf.math.count_nonzero(differing, dtype=tf.int64)


def _bits(value: Any) -> Any:
    if value.dtype == tf.bool:
        return tf.cast(value, tf.int8)
    return tf.bitcast(value, _INTEGERS[value.dtype.size])
