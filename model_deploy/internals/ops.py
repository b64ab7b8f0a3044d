"""Ops that are changed after they were made, or are in no public module; TensorFlow 2.16 to 2.21.

TensorFlow's own control flow and its gradients change ops with the same methods.
"""

from collections.abc import Sequence
from typing import Any

from tensorflow.python.ops import data_flow_ops, lookup_ops


def set_device(op: Any, device: str) -> None:
    """Moves an op to a device, `''` for any; `tf.device` acts on new ops only.

    Wraps `Operation._set_device_from_string`, which `Operation._set_device` calls once it has
    parsed and merged what it is given.
    """
    op._set_device_from_string(device)


def replace_input(op: Any, index: int, tensor: Any) -> None:
    """Lets an op take `tensor` as its input number `index`.

    Wraps `Operation._update_input`.  The tensor is to have the type and shape of the input that
    it replaces; one of another type is refused only by a session.

    Raises:
      ValueError: if the tensor is of another graph.
    """
    op._update_input(index, tensor)


def add_control_inputs(op: Any, others: Sequence[Any]) -> None:
    """Lets an op wait for others. Wraps `Operation._add_control_inputs`."""
    op._add_control_inputs(others)


def add_loop_inputs(op: Any, tensors: Sequence[Any]) -> None:
    """Gives a loop more inputs, of any shapes; its functions are to have them already.

    Wraps `Operation._add_while_inputs`.
    """
    op._add_while_inputs(tensors)


def add_outputs(op: Any, tensors: Sequence[Any]) -> None:
    """Gives a loop or condition more outputs, with the dtypes and shapes of `tensors`.

    Wraps `Operation._add_outputs`.
    """
    op._add_outputs([each.dtype for each in tensors], [each.shape for each in tensors])


def set_attribute(op: Any, name: str, value: Any) -> None:
    """Sets an attribute of an op to a `tf.AttrValue`. Wraps `Operation._set_attr`."""
    op._set_attr(name, value)


def clear_attribute(op: Any, name: str) -> None:
    """Removes an attribute of an op. Wraps `Operation._clear_attr`."""
    op._clear_attr(name)


def in_old_control_flow(op: Any) -> bool:
    """Whether an op is in a loop or condition of TensorFlow 1, which are no functions.

    Wraps `Operation._get_control_flow_context`.
    """
    return op._get_control_flow_context() is not None


def makes_old_control_flow(graph: Any) -> bool:
    """Whether new ops of a graph come into a loop or condition of TensorFlow 1.

    Wraps `Graph._get_control_flow_context`.
    """
    return graph._get_control_flow_context() is not None


def is_reference(tensor: Any) -> bool:
    """Whether a tensor, of any shape, is a reference to a variable, as TensorFlow 1 passes it on.

    Wraps `DType._is_ref_dtype`.
    """
    return bool(tensor.dtype._is_ref_dtype)


def lookup_module() -> Any:
    """The module of tables, with what `tf.lookup` leaves out.

    Wraps `lookup_ops.index_table_from_tensor`, `lookup_ops.index_table_from_file`
    and `lookup_ops.index_to_string_table_from_tensor`.
    """
    return lookup_ops


def barrier_class() -> type:
    """The class of queues whose elements come in parts, by key. Wraps `data_flow_ops.Barrier`."""
    kind: type = data_flow_ops.Barrier
    return kind
