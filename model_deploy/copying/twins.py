"""`Twins`: maps ops and tensors of the original clone to those of a copy."""

import collections
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf


@dataclasses.dataclass
class Twins:
    """A copy of a part of a graph: maps original names to the copy's.

    Attributes:
      scope: name scope of the copy; ends with `/`.
      index: number of the copy, at least 1.
      device_of: maps a device of the original to the copy's.
      ops: names of copied ops by the names of the original ops.
      tensors: by tensor name, replacements for inputs from outside that differ between copies, such
        as a clone's batch; of the same shapes and dtypes.
      functions: names of copied functions by the names of the original functions.
    """

    scope: str
    index: int
    device_of: Callable[[str], str]
    ops: dict[str, str] = dataclasses.field(default_factory=dict)
    tensors: dict[str, Any] = dataclasses.field(default_factory=dict)
    functions: dict[str, str] = dataclasses.field(default_factory=dict)

    def op(self, op: Any) -> Any:
        """Returns the copy of an op; the op itself if it is shared."""
        name = self.ops.get(op.name)
        return op if name is None else op.graph.get_operation_by_name(name)

    def tensor(self, tensor: Any) -> Any:
        """Returns the copy of a tensor; the tensor itself if it is shared.

        Args:
          tensor: of any shape.

        Returns:
          A tensor of the same dtype and static shape.

        Raises:
          ValueError: if the copy has another shape, since the shape depends on values.
        """
        if tensor.name in self.tensors:
            return self.tensors[tensor.name]
        if tensor.op.name not in self.ops:
            return tensor
        twin = self.op(tensor.op).outputs[tensor.value_index]
        if not twin.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                "a copied model_fn must build tensors whose shapes do not depend on values in the "
                f"batches, got {tensor.shape} for {tensor.name} and {twin.shape} for its copy; "
                "copy_clones=False calls model_fn for each clone instead"
            )
        if twin.shape.as_proto() != tensor.shape.as_proto():
            twin.set_shape(tensor.shape)  # `set_shape` of the original leaves no attribute to copy
        return twin

    def structure(self, value: Any) -> Any:
        """Returns the copy of a structure that a model returned or added to a collection.

        Tensors and ops are replaced in lists, tuples, dicts, dataclasses, sparse and ragged tensors
        and `IndexedSlices`, at any depth, by ones of the same shapes and dtypes; other objects are
        shared.

        Raises:
          ValueError: as `tensor`; for another object that holds a tensor or op with a copy.
        """
        if isinstance(value, tf.Tensor):
            return self.tensor(value)
        if isinstance(value, tf.Operation):
            return self.op(value)
        if isinstance(value, Mapping):
            items = [(key, self.structure(item)) for key, item in value.items()]
            return _rebuilt(value, [item for _, item in items], lambda: _mapping(value, items))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = [self.structure(item) for item in value]
            return _rebuilt(value, fields, lambda: type(value)(*fields))
        if isinstance(value, list | tuple | set):
            parts = [self.structure(item) for item in value]
            return _rebuilt(value, parts, lambda: type(value)(parts))
        return self._object(value)

    def _object(self, value: Any) -> Any:
        """Returns the copy of a composite tensor, dataclass, variable or other object."""
        if isinstance(value, tf.IndexedSlices | tf.SparseTensor | tf.RaggedTensor):
            return tf.nest.map_structure(self.structure, value, expand_composites=True)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            twins = {name: self.structure(item) for name, item in fields.items()}
            changed = {name: twin for name, twin in twins.items() if twin is not fields[name]}
            return dataclasses.replace(value, **changed) if changed else value
        if isinstance(value, tf.compat.v2.Variable):
            # `assign` of a resource variable returns a variable object with another op.
            return self.op(value.op) if value.op.name in self.ops else value
        for name, item in getattr(value, "__dict__", {}).items():
            if isinstance(item, tf.Tensor | tf.Operation) and self.structure(item) is not item:
                raise ValueError(
                    "a copied model_fn must return and collect tensors in lists, tuples, dicts "
                    f"or dataclasses, got {type(value).__name__} with a tensor in {name!r}; "
                    "copy_clones=False calls model_fn for each clone instead"
                )
        return value

    def match(self, tensor: Any, other: Any) -> bool:
        """Whether `other` is computed in the copy as `tensor` is in the original.

        Equal ops that were built by Python calls in both are added to the map.

        Args:
          tensor: a tensor of the original, of any shape.
          other: a tensor of the copy, of any shape.
        """
        if self.tensor(tensor).name == other.name:
            return True
        op, twin = tensor.op, other.op
        if op.name in self.ops or (op.type, tensor.value_index) != (twin.type, other.value_index):
            return False
        if len(op.inputs) != len(twin.inputs) or _attributes(op) != _attributes(twin):
            return False
        if not all(self.match(*pair) for pair in zip(op.inputs, twin.inputs, strict=True)):
            return False
        self.ops[op.name] = twin.name
        return True


def _mapping(value: Mapping[Any, Any], items: list[tuple[Any, Any]]) -> Any:
    if isinstance(value, collections.defaultdict):
        return collections.defaultdict(value.default_factory, items)
    kind: Any = type(value)
    return kind(items)


def _rebuilt(value: Any, parts: list[Any], make: Callable[[], Any]) -> Any:
    """Returns `value` itself if no item has changed, so that shared objects keep their identity."""
    before = value.values() if isinstance(value, Mapping) else value
    unchanged = all(part is old for part, old in zip(parts, before, strict=True))
    return value if unchanged else make()


def _attributes(op: Any) -> dict[str, Any]:
    return {key: value for key, value in op.node_def.attr.items() if key != "_class"}
