"""`rotate`: cuts a step that is built, so that a part of its update is made by the next run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gpus, graph_walk, internals, placement
from model_deploy.config import DeploymentConfig
from model_deploy.op_types import GET_BATCH, only_reads
from model_deploy.rotation.counting import count_ahead
from model_deploy.rotation.hazards import order_changes
from model_deploy.rotation.passage import Passage, local_variable
from model_deploy.rotation.rest import Rest

# Types of ops without inputs whose value is the same in each run of the session.
_FIXED = ("Const", "NoOp")


class Rotated(NamedTuple):
    """A step that leaves a rest.

    Attributes:
      updates: ops, and a scalar, that the train op waits for.
      rest: what is left; None if nothing is.
      late: the ops of the rest.
    """

    updates: list[Any]
    rest: Rest | None
    late: frozenset[Any]


def rotate(
    config: DeploymentConfig, left: Sequence[Any], updates: Sequence[Any], loss: Any
) -> Rotated:
    """Lets the next run of the session do what a step does from some of its ops on.

    *Late* are the ops of the step that need one of those, directly or not.  Values that late ops
    take from others are kept in local variables, from the end of one run to the beginning of the
    next.  There late ops come first, and others that use a variable wait for the late ops that
    change that variable, and for no more.  So each variable is changed, and used, in the order of
    the step that is not cut.

    Args:
      config: the deployment.
      left: the first ops of what is left to the next run.
      updates: ops, or tensors of any shapes, that make the step's changes.
      loss: the loss of the step, a scalar that needs none of `left`.
    """
    ends = list(dict.fromkeys(getattr(end, "op", end) for end in (*updates, loss)))
    step = graph_walk.ancestors(ends, control_inputs=True)
    late = graph_walk.descendants(left, step)
    if not late:
        return Rotated(list(updates), None, frozenset())
    early = step - late
    passage = Passage(config.optimizer_device(), _batches(early, late))
    kept, before = _keep_values(_Kept(config, passage, _changing(early)), late)
    count_ahead(passage, early, late)
    order_changes(passage, early, late)
    done = passage.gate([op for op in ends if op in late], config.optimizer_device())
    for op in early:
        # On GPUs collective ops come in one order everywhere.
        if op.type.startswith("Collective") and gpus.is_gpu(op.device):
            internals.add_control_inputs(op, [done])
    rest = Rest(config, passage, done)
    first = [*before, *kept, *(op for op in ends if op not in late), done, rest.asked]
    return Rotated([passage.leave(first, pending=True), rest.asked], rest, frozenset(late))


def _batches(early: set[Any], late: set[Any]) -> list[Any]:
    """Returns the ops that get the batches of a step, but for those that wait for a rest."""
    changed = {
        tensor.op
        for op in late
        if not only_reads(op.type)
        for tensor in op.inputs
        if placement.is_variable_op(tensor.op)
    }
    found = [op for op in early if op.type in GET_BATCH]
    found = [op for op in found if not changed & graph_walk.ancestors([op], control_inputs=True)]
    return sorted(found, key=lambda op: str(op.name))


def _changing(early: set[Any]) -> set[Any]:
    """Returns those of some ops that may give another value in each run of the session.

    Left out are constants, variables themselves, and what is made of both.
    """
    sources = [
        op
        for op in early
        if not placement.is_variable_op(op)
        and (
            internals.is_stateful(op.type)
            or any(_is_handle(tensor) for tensor in op.inputs)
            or not (op.inputs or op.type in _FIXED)
            or op.type == "PlaceholderWithDefault"
        )
    ]
    return graph_walk.descendants(sources, early)


def _is_handle(tensor: Any) -> bool:
    return tensor.dtype == tf.resource or internals.is_reference(tensor)


def _keep_values(values: "_Kept", late: set[Any]) -> tuple[list[Any], list[Any]]:
    """Gives late ops the values of the run before; returns ops that keep them, and others before.

    What a late op only waited for, in the run before, is over.
    """
    before: dict[Any, None] = {}
    for op in sorted(late, key=lambda op: str(op.name)):
        waits = [each for each in op.control_inputs if each in late]
        before.update(dict.fromkeys(each for each in op.control_inputs if each not in late))
        internals.set_control_inputs(op, waits)
        is_open = bool(waits)
        for index, tensor in enumerate(op.inputs):
            if tensor.op in late:
                is_open = True
            elif values.changes(tensor):
                internals.replace_input(op, index, values.of_run_before(tensor))
                is_open = True
        if not is_open:
            internals.add_control_inputs(op, [values.passage.yes(op.device)])
    return values.assigned, list(before)


class _Kept:
    """Values of one run of the session for the next one.

    Args:
      config: the deployment.
      passage: whether there is a rest.
      changing: the ops that may give another value in each run.

    Attributes:
      passage: as given.
      assigned: the ops that keep them.
    """

    def __init__(self, config: DeploymentConfig, passage: Passage, changing: set[Any]) -> None:
        self._config, self._changing, self.passage = config, changing, passage
        self._values: dict[str, Any] = {}
        self.assigned: list[Any] = []

    def changes(self, tensor: Any) -> bool:
        """Whether a tensor, of any shape, is to be kept: no handle, nor the same in all runs."""
        return tensor.op in self._changing and not _is_handle(tensor)

    def of_run_before(self, tensor: Any) -> Any:
        """Returns what a tensor, of any shape, was in the run before; dead without a rest."""
        if tensor.name not in self._values:
            device = tensor.device
            if not device or not tensor.dtype.base_dtype.is_floating:
                device = self._config.optimizer_device()
            with tf.control_dependencies(None), tf.name_scope("rotation/kept"), tf.device(device):
                variable = local_variable(f"left_{len(self._values)}", tensor, device)
                read = variable.read_value()
                read.set_shape(tensor.shape)
                self._values[tensor.name] = self.passage.opened(read, device)
                # A value read from a reference variable changes when the variable does.
                own = tf.raw_ops.DeepCopy(x=tensor) if _may_be_shared(tensor) else tensor
                with tf.control_dependencies([read]):
                    self.assigned.append(variable.assign(own, read_value=False))
        return self._values[tensor.name]


def _may_be_shared(tensor: Any) -> bool:
    """Whether a tensor, of any shape, may be in the memory of a reference variable."""
    found = graph_walk.ancestors([tensor.op])
    return any(op.type in ("Variable", "VariableV2") for op in found)
