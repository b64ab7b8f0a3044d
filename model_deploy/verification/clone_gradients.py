"""`CloneGradients`: each clone's gradients, to tell which clone has computed others."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals
from model_deploy.clone_gradients import noted_gradients
from model_deploy.op_types import VIEWS
from model_deploy.parts import Clone

_SUMS = ("AddN", "Add", "AddV2")
# Types of ops that keep their output.
_KEEPERS = ("Const", "ReadVariableOp", "Placeholder", "PlaceholderWithDefault")
# With which TensorFlow's rewriting marks sums that it leaves as they are.
_AS_IT_IS = "_grappler_ArithmeticOptimizer_AddOpsRewriteStage"


class CloneGradients:
    """The gradients of clones before they are added up.

    They are fetched, not compared by ops: an op that adds three or more values begins with one
    whose memory it may reuse.  Which one that is would depend on whether such an op has run, as it
    does where another op takes the first of the values.  What is fetched is kept to the end of the
    step; so all that is added up with gradients, or with such a value, is fetched as well.  In
    steps that fetch nothing of it, too, rewriting leaves each sum as it is.

    Args:
      clones: the clones, or their parts.
      report: the tensor that makes a step, of any shape.

    Attributes:
      names: for each tensor the variable, clone and device, in words.
      tensors: gradients, and of sparse ones values and rows, of any shapes.
      added: other values in the sums whose first value others keep, of any shapes.
    """

    def __init__(self, clones: Sequence[Clone], report: Any) -> None:
        self.names: list[str] = []
        self.tensors: list[Any] = []
        for clone, pairs in noted_gradients():
            if not any(clone is each for each in clones):
                continue
            for gradient, variable in pairs:
                for tensor in _tensors(gradient):
                    self.names.append(f"gradient of {variable.op.name} {_place(clone)}")
                    self.tensors.append(tensor)

        ends = [report.op, *(each.op for each in self.tensors)]
        needed = graph_walk.ancestors(ends, control_inputs=True)
        sums = [
            op
            for op in report.graph.get_operations()
            if op in needed and op.type in _SUMS and not internals.in_old_control_flow(op)
        ]
        shared = [each for op in sums if _begins_by_chance(op) for each in op.inputs]
        self.added = [*shared, *_added_to([*self.tensors, *shared])]
        for op in {*sums, *(each.op for each in (*self.tensors, *self.added))}:
            if op.type in _SUMS:
                internals.set_attribute(op, _AS_IT_IS, tf.AttrValue(b=True))

    def differing(self, first: Sequence[Any], second: Sequence[Any]) -> list[str]:
        """Returns the names of what differs in a bit between two values of all `tensors`.

        Args:
          first: NumPy arrays of any shapes.
          second: others.
        """
        rows = zip(self.names, first, second, strict=True)
        return list(dict.fromkeys(name for name, a, b in rows if a.tobytes() != b.tobytes()))


def _tensors(gradient: Any) -> list[Any]:
    if isinstance(gradient, tf.IndexedSlices):
        return [gradient.values, gradient.indices]
    return [] if gradient is None else [gradient]


def _begins_by_chance(op: Any) -> bool:
    """Whether a sum of three or more floats may begin with its first value, or with another one.

    It begins with the first value if nobody else has that value's memory, in the step.
    """
    first = op.inputs[0]
    if op.type != "AddN" or len(op.inputs) < 3 or not first.dtype.is_floating:
        return False
    while len(first.consumers()) == 1 and first.op.device == op.device:
        if first.op.type not in VIEWS:
            return first.op.type in _KEEPERS
        first = first.op.inputs[0]
    return True


def _added_to(tensors: Sequence[Any]) -> list[Any]:
    """Returns what else is added up with tensors, or with sums of them."""
    known = {tensor.name for tensor in tensors}
    found, waiting = [], list(tensors)
    while waiting:
        for op in waiting.pop().consumers():
            if op.type in _SUMS:
                new = [each for each in (*op.inputs, *op.outputs) if each.name not in known]
                known.update(each.name for each in new)
                found += new
                waiting += [each for each in new if each.op is op]
    return found


def _place(clone: Clone) -> str:
    part = clone.part
    if part is None:
        return f"on {clone.device}"
    number = f", part {part.index}" if part.config.accumulate_steps > 1 else ""
    return f"on {clone.device} (clone {part.clone_index}{number})"
