"""Variables, and optimizers' slots; seen in TensorFlow 2.16 to 2.21."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import resource_variable_ops
from tensorflow.python.ops.variables import PartitionedVariable
from tensorflow.python.training.saving import saveable_object_util
from tensorflow.python.training.saving.saveable_object import SaveableObject, SaveSpec


def is_resource_variable(variable: Any) -> bool:
    """Whether a variable is a resource variable, as opposed to a reference variable.

    Wraps `resource_variable_ops.is_resource_variable`.
    """
    return bool(resource_variable_ops.is_resource_variable(variable))


def restored_by(
    variable: Any, convert: Callable[..., Any], saved: Mapping[str, tf.DType] | None = None
) -> Any:
    """Prepares a variable for `tf.train.Saver`, which restores it as `convert` of saved tensors.

    Wraps `saveable_object.SaveableObject` and `saveable_object.SaveSpec`.

    Args:
      variable: a resource variable.
      convert: returns a tensor of the variable's shape for saved ones of any shapes.
      saved: the dtypes of the saved tensors by name; by default the variable's alone.  With any
        others the result can be restored, but not saved.
    """
    return _RestoredBy(variable, convert, saved or {variable.op.name: variable.dtype.base_dtype})


class _RestoredBy(SaveableObject):
    def __init__(self, variable: Any, convert: Callable[..., Any], saved: Any) -> None:
        device = variable.device
        specs = [
            SaveSpec(variable.read_value, "", name, dtype, device) for name, dtype in saved.items()
        ]
        super().__init__(variable, specs, variable.op.name)
        self._convert = convert

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_shapes  # None, unless the saver reshapes
        return self.op.assign(self._convert(*restored_tensors), read_value=False)


def saved_and_restored(name: str, saved: Mapping[str, Any], restore: Callable[..., Any]) -> Any:
    """Prepares tensors for `tf.train.Saver`, and what is done with them when it restores.

    Wraps `saveable_object.SaveableObject` and `saveable_object.SaveSpec`.

    Args:
      name: of the object; different from those of other objects.
      saved: by name the tensors, of any shapes, that are saved.
      restore: returns an op for the restored tensors, in the order of `saved`.
    """
    return _SavedAndRestored(name, saved, restore)


class _SavedAndRestored(SaveableObject):
    def __init__(self, name: str, saved: Mapping[str, Any], restore: Callable[..., Any]) -> None:
        specs = [SaveSpec(tensor, "", key) for key, tensor in saved.items()]
        first = next(iter(saved.values()))
        super().__init__(first, specs, name)
        self._restore = restore

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_shapes
        return self._restore(*restored_tensors)


def is_partitioned(variable: Any) -> bool:
    """Whether a variable is partitioned. Wraps `variables.PartitionedVariable`."""
    return isinstance(variable, PartitionedVariable)


def partitioned_variable(name: str, like: Any, parts: Sequence[Any]) -> Any:
    """Makes a partitioned variable of given parts.

    Wraps `variables.PartitionedVariable` and `PartitionedVariable._get_partitions`.

    Args:
      name: name of the new variable.
      like: a partitioned variable with the same shape, dtype and partitions.
      parts: the parts in order, of the shapes of the parts of `like`.
    """
    return PartitionedVariable(name, like.shape, like.dtype, list(parts), like._get_partitions())


def with_operators(variable: Any) -> Any:
    """Returns a partitioned variable with a tensor's operators, such as `+`, which layers use.

    Wraps `variables.PartitionedVariable` and `PartitionedVariable._get_partitions`.
    """
    parts = list(variable)
    partitions = variable._get_partitions()
    name = variable.name
    return _PartitionedWithOperators(name, variable.shape, variable.dtype, parts, partitions)


class _PartitionedWithOperators(PartitionedVariable):
    """A partitioned variable with a tensor's operators, which are set below."""


def _operator(name: str) -> Any:
    def compute(self: Any, *others: Any) -> Any:
        return getattr(tf.convert_to_tensor(self), name)(*others)

    return compute


for _name in tf.Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__"}:
    setattr(_PartitionedWithOperators, _name, _operator(_name))


def saved_as(variable: Any, value: Any) -> Any:
    """Prepares a variable for `tf.train.Saver`, which saves a tensor in place of its value.

    Wraps `saveable_object.SaveableObject`, `saveable_object.SaveSpec` and
    `Variable._save_slice_info`.

    Args:
      variable: a variable, or a part of a partitioned one.
      value: a tensor of its shape and dtype.
    """
    return _SavedAs(variable, value)


class _SavedAs(SaveableObject):
    def __init__(self, variable: Any, value: Any) -> None:
        part = slice_of(variable)
        name, spec = (variable.op.name, "") if part is None else (part.full_name, part.spec)
        specs = [SaveSpec(value, spec, name, variable.dtype.base_dtype)]
        super().__init__(variable, specs, variable.op.name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_shapes  # None, unless the saver reshapes
        [value] = restored_tensors
        return tf.group(self.op.assign(value, read_value=False))


def slice_of(variable: Any) -> Any:
    """Returns the slice of a partitioned variable that a variable is; None for other variables.

    Wraps `Variable._save_slice_info`.  It has `full_name` and `full_shape` of the whole variable,
    and `var_offset` and `var_shape` of the slice.
    """
    return getattr(variable, "_save_slice_info", None)


def set_slice_of(variable: Any, part: Any) -> None:
    """Makes a variable, of shape `var_shape`, the slice that `slice_of` returned.

    Wraps `Variable._set_save_slice_info`.
    """
    variable._set_save_slice_info(part)


def set_initializer(variable: Any, op: Any) -> None:
    """Makes `op` the `variable.initializer`. Wraps `Variable._initializer_op`."""
    variable._initializer_op = op


def set_trainable(variable: Any, trainable: bool) -> None:
    """Says whether a variable is trained, to tapes and custom gradients, and to no collection.

    Wraps `Variable._trainable`.
    """
    variable._trainable = trainable


def forget_slots(optimizer: Any) -> None:
    """Makes an optimizer forget its slots, and its other variables, such as Adam's powers of beta.

    Wraps `Optimizer._slots` and `Optimizer._non_slot_dict` of `tf.compat.v1.train.Optimizer`.
    """
    optimizer._slots, optimizer._non_slot_dict = {}, {}


def saveables(objects: Sequence[Any]) -> list[Any]:
    """Returns what `tf.train.Saver` makes of variables and other objects that it is given.

    Wraps `saveable_object_util.op_list_to_dict` and
    `saveable_object_util.validate_and_slice_inputs`.

    Args:
      objects: variables of any shapes, parts of partitioned ones, objects for a saver.

    Returns:
      Objects that have `specs`; each spec has `tensor`, which may add ops to the graph, `name`,
      `slice_spec`, `dtype` and `device`.
    """
    found: list[Any] = saveable_object_util.validate_and_slice_inputs(
        saveable_object_util.op_list_to_dict(list(objects))
    )
    return found


def saved_from(saveable: Any, tensors: Sequence[Any]) -> Any:
    """Prepares an object for `tf.train.Saver`, which saves other tensors, and restores nothing.

    Wraps `saveable_object.SaveableObject` and `saveable_object.SaveSpec`.

    Args:
      saveable: one of `saveables`.
      tensors: one of any shape for each of its specs, of the same dtype.
    """
    return _SavedFrom(saveable, tensors)


class _SavedFrom(SaveableObject):
    def __init__(self, saveable: Any, tensors: Sequence[Any]) -> None:
        specs = [
            SaveSpec(tensor, spec.slice_spec, spec.name)
            for spec, tensor in zip(saveable.specs, tensors, strict=True)
        ]
        # Parts of one variable have the same name, and a saver keeps the last object of a name.
        own_name = f"{saveable.name}/{specs[0].slice_spec}"
        super().__init__(tensors[0], specs, own_name)

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Any) -> Any:
        del restored_tensors, restored_shapes
        return tf.no_op()
