"""Variables and what optimizers keep of them; seen in TensorFlow 2.16 to 2.21."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.ops.variables import PartitionedVariable
from tensorflow.python.training.saving.saveable_object import SaveableObject, SaveSpec


def is_resource_variable(variable: Any) -> bool:
    """Whether a variable is a resource variable, in contrast to a reference variable.

    Wraps `resource_variable_ops.is_resource_variable`.
    """
    return bool(resource_variable_ops.is_resource_variable(variable))


def restored_by(variable: Any, convert: Callable[[Any], Any], saved_as: str | None = None) -> Any:
    """A variable for a `tf.train.Saver`, which sets it to what `convert` makes of a saved tensor.

    Wraps `saveable_object.SaveableObject` and `saveable_object.SaveSpec`.

    Args:
      variable: a resource variable.
      convert: from a tensor of any shape to one of that of the variable.
      saved_as: name of the saved tensor, of the same type; by default that of the variable.
    """
    return _RestoredBy(variable, convert, saved_as or variable.op.name)


class _RestoredBy(SaveableObject):
    def __init__(self, variable: Any, convert: Callable[[Any], Any], saved_as: str) -> None:
        spec = SaveSpec(variable.read_value(), "", saved_as, variable.dtype)
        super().__init__(variable, [spec], variable.op.name)
        self._convert = convert

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_shapes  # None, unless the saver reshapes
        return self.op.assign(self._convert(*restored_tensors), read_value=False)


def is_partitioned(variable: Any) -> bool:
    """Whether a variable is several parts. Wraps `variables.PartitionedVariable`."""
    return isinstance(variable, PartitionedVariable)


def partitioned_variable(name: str, like: Any, parts: Sequence[Any]) -> Any:
    """A partitioned variable of other parts.

    Wraps `variables.PartitionedVariable` and `PartitionedVariable._get_partitions`.

    Args:
      name: its name.
      like: the partitioned variable whose shape, dtype and cut it has.
      parts: its parts, in order; of the shapes of those of `like`.
    """
    return PartitionedVariable(name, like.shape, like.dtype, list(parts), like._get_partitions())


def with_operators(variable: Any) -> Any:
    """A partitioned variable that computes by `+`, `*` and so on, as layers do with variables.

    Wraps `variables.PartitionedVariable` and `PartitionedVariable._get_partitions`.
    """
    parts = list(variable)
    partitions = variable._get_partitions()
    name = variable.name
    return _Computing(name, variable.shape, variable.dtype, parts, partitions)


class _Computing(PartitionedVariable):
    """A partitioned variable with the operators of a tensor."""


def _operator(name: str) -> Any:
    def compute(self: Any, *others: Any) -> Any:
        return getattr(tf.convert_to_tensor(self), name)(*others)

    return compute


for _name in tf.Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__"}:
    setattr(_Computing, _name, _operator(_name))


def slice_of(variable: Any) -> Any:
    """Which part of which whole a variable is; None for one that is whole, or no variable.

    Wraps `Variable._save_slice_info`.  It has `full_name`, and for each axis the `full_shape` of
    the whole, and the `var_offset` and `var_shape` of the part.
    """
    return getattr(variable, "_save_slice_info", None)


def set_slice_of(variable: Any, part: Any) -> None:
    """Makes a variable the part that `slice_of` described; it has the `var_shape` of that.

    Wraps `Variable._set_save_slice_info`.
    """
    variable._set_save_slice_info(part)


def set_initializer(variable: Any, op: Any) -> None:
    """Lets `op` be what `variable.initializer` is. Wraps `Variable._initializer_op`."""
    variable._initializer_op = op


def set_trainable(variable: Any, trainable: bool) -> None:
    """Says whether a variable is trained, to tapes and custom gradients, and to no collection.

    Wraps `Variable._trainable`.
    """
    variable._trainable = trainable


def forget_slots(optimizer: Any) -> None:
    """Makes an optimizer forget its slots, and what it has once, such as Adam's powers of beta.

    Wraps `Optimizer._slots` and `Optimizer._non_slot_dict` of `tf.compat.v1.train.Optimizer`.
    """
    optimizer._slots, optimizer._non_slot_dict = {}, {}
