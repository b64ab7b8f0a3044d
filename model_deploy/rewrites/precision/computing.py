"""`computing_in`: makes convolutions, matrix products and the ops between them in 16 bits."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp
from model_deploy.rewrites.making import Form, Rewrite
from model_deploy.rewrites.precision.gradients import overrides
from model_deploy.rewrites.precision.op_types import (
    BETWEEN,
    COMPUTE,
    SLOW_IN_FLOAT16,
    is_little_work,
    is_slow_on_cpus,
    lacks_float16_on_cpus,
)

# Types of ops whose output is the value of a variable or a constant.
_PARAMETERS = ("Const", "ReadVariableOp")
# Types of ops whose output still counts as a parameter if all of their inputs do.
_SAME_VALUES = ("Cast", "ConcatV2", "ExpandDims", "Identity", "Pack", "Reshape", "Squeeze")


@contextlib.contextmanager
def computing_in(precision: str, device: str = "") -> Iterator[None]:
    """Makes the ops of a `with` block in a precision, where that does not hurt accuracy or speed.

    16 bits are used for convolutions and matrix products, and for ops of the types in `BETWEEN`
    that follow them, unless another input is a float32 value that is neither variable nor constant
    (the target of a loss, say).  Ops that a `tf.GradientTape` records are not changed.  As in
    sections 3.1 and 3.3 of Micikevicius et al., https://arxiv.org/abs/1710.03740, variables,
    reductions, norms and losses are float32.

    Args:
      precision: one of `PRECISIONS`.
      device: where the ops will run; a device that names no GPU counts as a CPU, on which ops
        that are slower in 16 bits stay in float32.
    """
    if precision == "float32":
        yield
        return
    casting = _Casting(tf.as_dtype(precision), "GPU" in device.upper())
    with internals.making_ops_by(casting.make):
        yield


class _Casting(Rewrite):
    """Makes ops in 16 bits in place of ops in float32.

    Args:
      dtype: `tf.bfloat16` or `tf.float16`.
      on_gpu: whether the ops will run on a GPU.
    """

    def __init__(self, dtype: Any, on_gpu: bool) -> None:
        self.name = dtype.name
        self._dtype = dtype
        self._on_gpu = on_gpu
        in_float16_on_cpu = dtype == tf.float16 and not on_gpu
        self._between = BETWEEN - SLOW_IN_FLOAT16 if in_float16_on_cpu else BETWEEN
        self._gradients = overrides(dtype)

    def form_of(self, new: NewOp) -> Form | None:
        if new.type not in COMPUTE and new.type not in self._between:
            return None
        if "T" not in new.attrs or new.attrs["T"].type != tf.float32.as_datatype_enum:
            return None
        places = _places_of_type(new)
        if new.type in self._between and not self._lies_between([new.inputs[i] for i in places]):
            return None
        if not self._on_gpu and self._is_slow(new):
            return None
        return Form(places, {"T": tf.AttrValue(type=self._dtype.as_datatype_enum)})

    def converted(self, tensor: Any, form: Form) -> Any:
        return tf.cast(tensor, self._dtype)

    def brought_back(self, tensor: Any, form: Form, name: str | None = None) -> Any:
        return tf.cast(tensor, tf.float32, name=name)

    def around_op(self) -> Any:
        return tf.get_default_graph().gradient_override_map(self._gradients)

    def _is_slow(self, new: NewOp) -> bool:
        if self._dtype == tf.float16 and lacks_float16_on_cpus(new):
            return True
        if is_slow_on_cpus(new):
            return True
        return is_little_work(new) and not self._has_16_bits(new.inputs[0])

    def _lies_between(self, inputs: list[Any]) -> bool:
        computed = [tensor for tensor in inputs if not _is_parameter(tensor)]
        return bool(computed) and all(map(self._has_16_bits, computed))

    def known(self, tensor: Any) -> Any:
        source = _source(tensor, stop=_has_own_gradient)
        return source.op.inputs[0] if self._is_brought_back(source) else None

    def _has_16_bits(self, tensor: Any) -> bool:
        """Whether the values of a float32 tensor were computed in 16 bits."""
        return self._is_brought_back(_source(tensor))

    def _is_brought_back(self, tensor: Any) -> bool:
        op = tensor.op
        if op.type != "Cast" or tensor.dtype != tf.float32:
            return False
        return bool(op.inputs[0].dtype == self._dtype)


def _has_own_gradient(op: Any) -> bool:
    """Whether an op has its own gradient function, as of `tf.custom_gradient`."""
    return "_gradient_op_type" in op.node_def.attr


def _source(tensor: Any, stop: Callable[[Any], bool] = lambda op: False) -> Any:
    """Follows an output of `IdentityN` ops back to the tensor that they pass on.

    Args:
      tensor: of any shape.
      stop: returns whether to go no further back than an op.
    """
    while tensor.op.type == "IdentityN" and not stop(tensor.op):
        tensor = tensor.op.inputs[tensor.value_index]
    return tensor


def _places_of_type(new: NewOp) -> list[int]:
    """Returns the places of the inputs of type `T`; one argument may be several inputs."""
    places: list[int] = []
    start = 0
    for argument in new.op_def.input_arg:
        count = new.attrs[argument.number_attr].i if argument.number_attr else 1
        if argument.type_attr == "T":
            places += range(start, start + count)
        start += count
    return places


def _is_parameter(tensor: Any) -> bool:
    """Whether a tensor, of any shape, is a variable's value or a constant, perhaps reshaped."""
    op = tensor.op
    if op.type in _PARAMETERS:
        return True
    if op.type == "Identity" and internals.is_reference(op.inputs[0]):
        return True
    return op.type in _SAME_VALUES and all(_is_parameter(each) for each in op.inputs)
