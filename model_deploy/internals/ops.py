"""Changes existing ops, and gives access to internal ones; seen in TensorFlow 2.16 to 2.21.

TensorFlow's own control flow and its gradients change ops by the same methods.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorflow.core.framework import model_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.ops import data_flow_ops, lookup_ops

# Stages of pipelines that have threads of their own.
_ASYNCHRONOUS = (
    model_pb2.ASYNC_INTERLEAVE_MANY,
    model_pb2.ASYNC_KNOWN_RATIO,
    model_pb2.ASYNC_UNKNOWN_RATIO,
)


def set_device(op: Any, device: str) -> None:
    """Moves an existing op to a device, `''` for any; `tf.device` acts on new ops only.

    Wraps `Operation._set_device_from_string`, without the parsing and merging of
    `Operation._set_device`.
    """
    op._set_device_from_string(device)


def replace_input(op: Any, index: int, tensor: Any) -> None:
    """Makes `tensor` the input number `index` of an op.

    Wraps `Operation._update_input`.  The tensor must have the dtype and shape of the old input;
    another dtype is an error only when a session runs.

    Raises:
      ValueError: if the tensor is of another graph.
    """
    op._update_input(index, tensor)


def add_control_inputs(op: Any, others: Sequence[Any]) -> None:
    """Makes an op wait for other ops. Wraps `Operation._add_control_inputs`."""
    op._add_control_inputs(others)


def replace_control_input(op: Any, before: Any, after: Any) -> None:
    """Makes an op wait for the op `after` in place of the op `before`.

    Wraps `Operation._remove_all_control_inputs` and `Operation._add_control_inputs`.
    """
    others = [each for each in op.control_inputs if each is not before]
    op._remove_all_control_inputs()
    op._add_control_inputs([*others, after])


def set_control_inputs(op: Any, others: Sequence[Any]) -> None:
    """Makes an op wait for other ops, and for none of those that it has waited for.

    Wraps `Operation._remove_all_control_inputs` and `Operation._add_control_inputs`.
    """
    op._remove_all_control_inputs()
    op._add_control_inputs(list(others))


def is_stateful(op_type: str) -> bool:
    """Whether TensorFlow calls ops of a type stateful: two of them are not one.

    Wraps `op_def_registry.get`.
    """
    definition = op_def_registry.get(op_type)
    return definition is None or bool(definition.is_stateful)


def add_loop_inputs(op: Any, tensors: Sequence[Any]) -> None:
    """Adds inputs, of any shapes, to a loop, whose functions must have them already.

    Wraps `Operation._add_while_inputs`.
    """
    op._add_while_inputs(tensors)


def add_outputs(op: Any, tensors: Sequence[Any]) -> None:
    """Adds outputs to a loop or condition, with the dtypes and shapes of `tensors`.

    Wraps `Operation._add_outputs`.
    """
    op._add_outputs([each.dtype for each in tensors], [each.shape for each in tensors])


def set_attribute(op: Any, name: str, value: Any) -> None:
    """Sets an attribute of an op, a `tf.AttrValue`. Wraps `Operation._set_attr`."""
    op._set_attr(name, value)


def clear_attribute(op: Any, name: str) -> None:
    """Removes an attribute of an op. Wraps `Operation._clear_attr`."""
    op._clear_attr(name)


def in_old_control_flow(op: Any) -> bool:
    """Whether an op is in a loop or condition of TensorFlow 1, not made of functions.

    Wraps `Operation._get_control_flow_context`.
    """
    return op._get_control_flow_context() is not None


def makes_old_control_flow(graph: Any) -> bool:
    """Whether new ops of a graph become part of a loop or condition of TensorFlow 1.

    Wraps `Graph._get_control_flow_context`.
    """
    return graph._get_control_flow_context() is not None


def is_reference(tensor: Any) -> bool:
    """Whether a tensor, of any shape, is a reference to a reference variable.

    Wraps `DType._is_ref_dtype`.
    """
    return bool(tensor.dtype._is_ref_dtype)


def lookup_module() -> Any:
    """Returns the module of lookup tables, with functions that `tf.lookup` lacks.

    Wraps `lookup_ops.index_table_from_tensor`, `lookup_ops.index_table_from_file`
    and `lookup_ops.index_to_string_table_from_tensor`.
    """
    return lookup_ops


def barrier_class() -> type:
    """Returns the class of queues of keyed parts of elements. Wraps `data_flow_ops.Barrier`."""
    kind: type = data_flow_ops.Barrier
    return kind


class PipelineNode(NamedTuple):
    """One stage of a `tf.data` pipeline.

    Attributes:
      busy_secs: seconds of work since the start, over all of its threads.
      elements: how many were taken from it.
      made: how many it has made, with those in its buffer.
      parallelism: how many threads it has: at least 1.
      has_thread: whether it works beside the stage that takes from it.
      inputs: names of the stages that it takes from.
    """

    busy_secs: float
    elements: int
    made: int
    parallelism: float
    has_thread: bool
    inputs: tuple[int, ...]


def pipeline_nodes(model: bytes) -> dict[int, PipelineNode]:
    """Returns the stages of a pipeline, by name, each after those that it takes from.

    Wraps `model_pb2.ModelProto`, the model by which TensorFlow tunes a pipeline.

    Args:
      model: what `tf.raw_ops.IteratorGetModelProto` returned.
    """
    parsed = model_pb2.ModelProto.FromString(model)
    found = {}
    for name in sorted(parsed.nodes, reverse=True):  # a stage is made before its inputs
        node = parsed.nodes[name]
        parallel = [each.value for each in node.parameters if each.name == "parallelism"]
        found[name] = PipelineNode(
            node.processing_time * 1e-9,
            node.num_elements,
            node.num_elements + node.buffered_elements,
            max(1.0, *parallel, 1.0),
            node.node_class in _ASYNCHRONOUS,
            tuple(node.inputs),
        )
    return found
