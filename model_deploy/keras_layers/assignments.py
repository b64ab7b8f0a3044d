"""`Assignments`: what layers assign to variables while they are called, as update ops.

Keras assigns at once.  In a graph nobody would run these ops, and what reads the variable later
in the same call might see either value.  So an assignment in a layer makes a value, which later
reads in the same clone get, and the last value of each variable is assigned by an update op.  The
gradient of such a value is that of the variable, as it is for Keras, which reads the variable anew.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.internals import NewOp
from model_deploy.keras_layers.variables import is_by_no_layer
from model_deploy.op_types import ASSIGNMENTS, changes_rows, is_assignment

# Name scope of the update ops; `update_after` knows them by it.
_SCOPE = "layer_updates"
_ASSIGN = "AssignVariableOp"
# What a method of a variable makes of its value and the operand; None for the operand itself.
_COMBINED_BY = {"assign": None, "assign_add": tf.add, "assign_sub": tf.subtract}


class _Assigned(NamedTuple):
    """A value that a layer has assigned to a variable.

    Attributes:
      handle: of the variable, a resource scalar.
      op_type: of the update op.
      operand: what that takes, of the variable's shape and dtype.
      value: the value that the variable has then; None if nobody has asked yet.
    """

    handle: Any
    op_type: str
    operand: Any
    value: Any = None


class Assignments:
    """The assignments of the layers of one clone.

    Args:
      has_others: whether there are other clones, for each of which the layers are called.
    """

    def __init__(self, *, has_others: bool) -> None:
        self._has_others = has_others
        self._changes: dict[str, _Assigned] = {}
        self._rows: list[Any] = []
        self._replaced: dict[str, Any] = {}
        self._groups: dict[bytes, Any] = {}
        self._in_layer: list[str] = []

    @contextlib.contextmanager
    def in_layer(self, name: str | None) -> Iterator[None]:
        """A `with` block in which assignments are those of the layer; of nobody with None."""
        before, self._in_layer = self._in_layer, [] if name is None else [name]
        try:
            yield
        finally:
            self._in_layer = before

    def use_in_place_of(self, variable: Any, other: Any) -> None:
        """Lets ops from now on use `other` where they would use `variable`, of the same shape."""
        self._replaced[variable.handle.name] = other.handle
        self._groups[f"loc:@{variable.op.name}".encode()] = other.op

    def rule(self, new: NewOp) -> Any:
        """For `internals.making_ops_by`: the op in place of a new one, or None."""
        if is_by_no_layer():
            return None
        takes_variable = any(tensor.dtype == tf.resource for tensor in new.inputs)
        if takes_variable and tf.get_default_graph().building_function:
            self._check_function(new)
            return None
        op = None
        inputs = list(new.inputs)
        if takes_variable:
            inputs = [self._replaced.get(tensor.name, tensor) for tensor in inputs]
            op = self._of_variable(new, inputs)
        if not self._groups:
            return op
        return self._tied(op or new.make(new.name, inputs, new.attrs))

    def _of_variable(self, new: NewOp, inputs: Sequence[Any]) -> Any:
        """The op in place of a new one that reads or changes a variable; None for others."""
        handle = inputs[0]
        if new.type == "ReadVariableOp" and handle.name in self._changes:
            # What is read under an assignment's control is read after it, by the value.
            with _of_nothing():
                return tf.identity(self._value(handle.name), name=f"{new.name}/").op
        if self._in_layer and is_assignment(new.type):
            self._change(new.type, handle, inputs[1])
            return tf.no_op(name=f"{new.name}/")
        # These are update ops as they are.
        if self._in_layer and changes_rows(new.type):
            self._rows.append(new.make(new.name, inputs, new.attrs))
            return self._rows[-1]
        return None

    def changed_and_trained(self) -> list[str]:
        """The names of the trainable variables that layers have assigned to."""
        changed = {id(change.handle) for change in self._changes.values()}
        return [each.op.name for each in tf.trainable_variables() if id(_handle(each)) in changed]

    def add_update_ops(self) -> None:
        """Adds the update ops to `tf.GraphKeys.UPDATE_OPS`, for the clone whose scope is open."""
        with tf.name_scope(_SCOPE):
            for change in self._changes.values():
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, _update_op(change))
        for op in self._rows:
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, op)

    def _tied(self, op: Any) -> Any:
        """The op, tied to what is used in place of the variables that it was tied to."""
        groups = list(op.get_attr("_class")) if "_class" in op.node_def.attr else []
        others = [self._groups[group] for group in groups if group in self._groups]
        if others:
            names = [f"loc:@{other.name}".encode() for other in others]
            names += [group for group in groups if group not in self._groups]
            value = tf.AttrValue(list=tf.AttrValue.ListValue(s=names))
            internals.set_attribute(op, "_class", value)
            internals.set_device(op, others[0].device)
        return op

    def _change(self, op_type: str, handle: Any, operand: Any) -> None:
        combine = _COMBINED_BY[ASSIGNMENTS[op_type]]
        if combine is None or handle.name not in self._changes:
            self._changes[handle.name] = _Assigned(handle, op_type, operand)
            return
        with _of_nothing():
            value = combine(self._value(handle.name), operand)
        self._changes[handle.name] = _Assigned(handle, _ASSIGN, value)

    def _value(self, name: str) -> Any:
        change = self._changes[name]
        if change.value is None:
            with _of_nothing():
                change = change._replace(value=_value_after(change))
            self._changes[name] = change
        return change.value

    def _check_function(self, new: NewOp) -> None:
        if self._in_layer and self._has_others and is_assignment(new.type):
            raise ValueError(
                "a layer in model_fn must assign to its variables outside of loops, conditions and "
                f"functions, so that not each clone does, got {_outside(new.inputs[0]).op.name} "
                f"assigned in one of the layer {self._in_layer[0]!r}; assign in its call, or train "
                "one clone"
            )


def update_after(ops: Sequence[Any], loss: Any) -> Sequence[Any]:
    """Lets the update ops of layers wait for a loss, which then sees no new value.

    Args:
      ops: update ops, also others.
      loss: a scalar.

    Returns:
      `ops`.
    """
    for op in ops:
        if isinstance(op, tf.Operation) and f"/{_SCOPE}/" in f"/{op.name}":
            internals.add_control_inputs(op.inputs[1].op, [loss.op])
    return ops


@contextlib.contextmanager
def _of_nothing() -> Iterator[None]:
    """A `with` block whose ops wait for nothing and are tied to nothing that is around."""
    graph = tf.get_default_graph()
    with tf.control_dependencies(None), graph.colocate_with(None, ignore_existing=True):
        yield


def _value_after(change: _Assigned) -> Any:
    """The value of a variable after an assignment, with the gradient of the variable if trained."""
    combine = _COMBINED_BY[ASSIGNMENTS[change.op_type]]
    is_trained = any(change.handle is _handle(each) for each in tf.trainable_variables())
    if combine is None and not is_trained:
        return change.operand
    before = tf.raw_ops.ReadVariableOp(resource=change.handle, dtype=change.operand.dtype)
    value = change.operand if combine is None else combine(before, change.operand)
    # Zero, but for its gradient.
    return tf.stop_gradient(value) + (before - tf.stop_gradient(before)) if is_trained else value


def _handle(variable: Any) -> Any:
    """The handle of a resource variable, a scalar; None of a reference variable."""
    return getattr(variable, "handle", None)


def _update_op(change: _Assigned) -> Any:
    name = change.handle.op.name
    graph = tf.get_default_graph()
    # The value waits for the loss where it is computed, and then goes to the variable.
    operand = tf.identity(change.operand, name=f"{name}/value")
    with tf.device(change.handle.device), graph.colocate_with(None, ignore_existing=True):
        make = getattr(tf.raw_ops, change.op_type)
        return make(resource=change.handle, value=operand, name=f"{name}/assign")


def _outside(handle: Any) -> Any:
    """The handle outside of all functions that a function takes as `handle`, a resource scalar."""
    graph = handle.graph
    while graph.building_function:
        outer = [outside for outside, inside in graph.captures if inside is handle]
        if not outer:
            break
        handle, graph = outer[0], graph.outer_graph
    return handle
