"""`CloneGradients`: each clone's gradients, to tell which clone has computed others."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.clone_gradients import noted_gradients
from model_deploy.parts import Clone

_SUMS = ("AddN", "Add", "AddV2")
# With which TensorFlow's rewriting marks sums that it leaves as they are.
_AS_IT_IS = "_grappler_ArithmeticOptimizer_AddOpsRewriteStage"


class CloneGradients:
    """The gradients of clones before they are added up.

    They are fetched, not compared by ops: an op that adds three or more values begins with one
    whose memory it may reuse.  Which one that is would depend on whether such an op has run.  What
    is fetched is kept to the end of the step; so all that is added up with gradients is fetched as
    well.  In steps that fetch nothing of it, too, rewriting leaves each sum as it is.

    Args:
      clones: the clones, or their parts.

    Attributes:
      names: for each tensor the variable, clone and device, in words.
      tensors: gradients, and of sparse ones values and rows, of any shapes.
      added: other values in the sums that gradients are a part of, of any shapes.
    """

    def __init__(self, clones: Sequence[Clone]) -> None:
        self.names: list[str] = []
        self.tensors: list[Any] = []
        for clone, pairs in noted_gradients():
            if not any(clone is each for each in clones):
                continue
            for gradient, variable in pairs:
                for tensor in _tensors(gradient):
                    self.names.append(f"gradient of {variable.op.name} {_place(clone)}")
                    self.tensors.append(tensor)

        self.added = _added_to(self.tensors)
        for op in {each.op for each in (*self.tensors, *self.added)}:
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
