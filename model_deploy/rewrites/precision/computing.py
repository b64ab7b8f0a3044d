"""`computing_in`: convolutions, matrix products and what lies between them are made in 16 bits.

Each op is decided upon when it is made, also in loops and conditions.  One in 16 bits takes casts
of its inputs, and a cast back stands for it, under its name and with its type: so `model_fn` sees
float32 everywhere.  The next op in 16 bits takes what is before that cast; if all do, nobody runs
it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp
from model_deploy.rewrites.precision.gradients import overrides
from model_deploy.rewrites.precision.op_types import (
    BETWEEN,
    COMPUTE,
    SLOW_IN_FLOAT16,
    is_slow_on_cpus,
    lacks_float16_on_cpus,
)

# A value of these is one of a variable or constant, whatever it is made of.
_PARAMETERS = ("Const", "ReadVariableOp")
# What these make of such values is another one.
_SAME_VALUES = ("Cast", "ConcatV2", "ExpandDims", "Identity", "Pack", "Reshape", "Squeeze")


@contextlib.contextmanager
def computing_in(precision: str, device: str = "") -> Iterator[None]:
    """Makes the ops of a `with` block in a precision, as far as that is good for them.

    In 16 bits are convolutions and matrix products; and what lies behind them of the types in
    `BETWEEN`, unless it also takes a value of 32 bits that is neither variable nor constant (the
    target of a loss, say).  What a `tf.GradientTape` records stays as it is.  The types follow
    Micikevicius et al., https://arxiv.org/abs/1710.03740, sections 3.1 and 3.3: variables,
    reductions, norms and losses are float32.

    Args:
      precision: one of `PRECISIONS`.
      device: where the ops will run; one that does not name a GPU is taken for a CPU, on which
        some ops are too slow in float16.
    """
    if precision == "float32":
        yield
        return
    casting = _Casting(tf.as_dtype(precision), "GPU" in device.upper())
    with internals.making_ops_by(casting.make):
        yield


class _Casting:
    """Makes ops in 16 bits that were about to be made in 32.

    Args:
      dtype: `tf.bfloat16` or `tf.float16`.
      on_gpu: whether for a GPU.
    """

    def __init__(self, dtype: Any, on_gpu: bool) -> None:
        self._dtype = dtype
        self._on_gpu = on_gpu
        in_float16_on_cpu = dtype == tf.float16 and not on_gpu
        self._between = BETWEEN - SLOW_IN_FLOAT16 if in_float16_on_cpu else BETWEEN
        self._gradients = overrides(dtype)

    def make(self, new: NewOp) -> Any:
        """The op that takes the place of a new one; None if that is to stay as it is."""
        if new.type not in COMPUTE and new.type not in self._between:
            return None
        if "T" not in new.attrs or new.attrs["T"].type != tf.float32.as_datatype_enum:
            return None
        if internals.tape_records():
            return None
        places = _places_of_type(new)
        if new.type in self._between and not self._lies_between([new.inputs[i] for i in places]):
            return None
        if not self._on_gpu and self._is_slow(new):
            return None
        inputs = list(new.inputs)
        attrs = {**new.attrs, "T": tf.AttrValue(type=self._dtype.as_datatype_enum)}
        with tf.name_scope(f"{new.name}/"):
            for i in places:
                inputs[i] = self._before_cast(inputs[i])
                if inputs[i] is None:
                    inputs[i] = tf.cast(new.inputs[i], self._dtype)
            with tf.get_default_graph().gradient_override_map(self._gradients):
                op = new.make(f"{new.name}/{self._dtype.name}", inputs, attrs)
        return _in_32_bits(op, new)

    def _is_slow(self, new: NewOp) -> bool:
        if self._dtype == tf.float16 and lacks_float16_on_cpus(new):
            return True
        is_norm = new.type == "FusedBatchNormV3"
        return is_slow_on_cpus(new) and (is_norm or self._before_cast(new.inputs[0]) is None)

    def _lies_between(self, inputs: list[Any]) -> bool:
        computed = [tensor for tensor in inputs if not _is_parameter(tensor)]
        return bool(computed) and all(self._before_cast(each) is not None for each in computed)

    def _before_cast(self, tensor: Any) -> Any:
        """The value in 16 bits that `tensor` was cast from, of its shape; None if it was not."""
        op = tensor.op
        while op.type == "IdentityN":
            tensor = op.inputs[tensor.value_index]
            op = tensor.op
        if op.type == "Cast" and op.inputs[0].dtype == self._dtype and tensor.dtype == tf.float32:
            return op.inputs[0]
        return None


def _in_32_bits(op: Any, new: NewOp) -> Any:
    """An op under the name of the new one, with the outputs of `op` as float32."""
    outputs = list(op.outputs)
    if len(outputs) == 1:
        return tf.cast(outputs[0], tf.float32, name=f"{new.name}/").op
    with tf.name_scope(f"{new.name}/"):
        outputs = [tf.cast(each, tf.float32) for each in outputs]
    return tf.identity_n(outputs, name=f"{new.name}/")[0].op


def _places_of_type(new: NewOp) -> list[int]:
    """Places of the inputs that are of type `T`; one argument may be several inputs."""
    places: list[int] = []
    start = 0
    for argument in new.op_def.input_arg:
        count = new.attrs[argument.number_attr].i if argument.number_attr else 1
        if argument.type_attr == "T":
            places += range(start, start + count)
        start += count
    return places


def _is_parameter(tensor: Any) -> bool:
    """Whether a tensor of any shape is a variable's value or a constant, or made of such alone."""
    op = tensor.op
    if op.type in _PARAMETERS:
        return True
    if op.type == "Identity" and internals.is_reference(op.inputs[0]):
        return True
    return op.type in _SAME_VALUES and all(_is_parameter(each) for each in op.inputs)
