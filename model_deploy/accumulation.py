"""Gradient accumulation: the parts of a clone run one after the other; their gradients are summed.

A part begins when the gradients of the previous part have been added to the sum.  So memory holds
the activations and gradients of one part at a time, and the sum.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import gradients as gradients_lib
from model_deploy import graph_walk, internals, placement
from model_deploy.gradients import GradientAndVariable
from model_deploy.parts import Clone

# Types of ops that compute nothing, or whose value is known before the step.
_SOURCES = ("Const", "NoOp", "Placeholder", "PlaceholderWithDefault")


class PartGradients(NamedTuple):
    """The gradients of one part of a clone, or of losses that count once per deployment.

    Attributes:
      clone: the part.
      losses: the scalars that were differentiated.
      gradients: `(gradient, variable)` pairs; a gradient has the variable's shape, is an
        `IndexedSlices` over its rows, or None.
      ops: the ops that computing the gradients has added to the graph.
    """

    clone: Clone
    losses: Sequence[Any]
    gradients: list[GradientAndVariable]
    ops: Sequence[Any]


def accumulate(parts: Sequence[PartGradients]) -> list[GradientAndVariable]:
    """Makes the parts of a clone run one after the other; returns the sums of their gradients.

    Args:
      parts: the gradients of each part of one clone, with the same variables in the same order.

    Returns:
      `(gradient, variable)` pairs as in `PartGradients`, summed over the parts: None if every part
      has None, an `IndexedSlices` with the rows of all parts if every gradient is sparse.
    """
    if len(parts) == 1:
        return parts[0].gradients
    total = _RunningSum(parts[0])
    before: set[Any] = set()
    begun = {id(parts[0].clone)}
    for part in parts[1:]:
        last = total.newest
        before |= graph_walk.ancestors(last, control_inputs=True, known=before)
        with (
            tf.device(part.clone.device),
            tf.name_scope(part.clone.scope),
            tf.control_dependencies(last),
        ):
            done = tf.no_op(name="part_before_is_done")
        # Losses that count once, such as regularization, need little memory: only gradients wait.
        made = part.clone.part
        forward = () if made is None or id(part.clone) in begun else made.ops
        begun.add(id(part.clone))
        _begin_after(done, part, [*forward, *part.ops], before)
        total.add(part)
    return total.result()


class _RunningSum:
    """The sum of the gradients of all parts so far: a dense tensor, and a list of sparse gradients.

    Attributes:
      newest: the ops that finish once the last added part is in the sum.
    """

    def __init__(self, first: PartGradients) -> None:
        self._clone = first.clone
        self._variables = [variable for _, variable in first.gradients]
        self._dense: list[Any] = [None for _ in self._variables]
        self._rows: list[list[Any]] = [[] for _ in self._variables]
        self.newest: list[Any] = []
        self.add(first)

    def add(self, part: PartGradients) -> None:
        """Adds the gradients of a part."""
        # The loss as well: its gradients need not depend on its value.
        self.newest = [loss.op for loss in part.losses]
        for i, (gradient, variable) in enumerate(part.gradients):
            if gradient is None:
                continue
            if isinstance(gradient, tf.IndexedSlices):
                self._rows[i].append(gradient)
                self.newest += [gradient.values.op, gradient.indices.op]
                continue
            if self._dense[i] is not None:
                # `add_n` over all parts would keep every part's gradient in memory until the end.
                with tf.device(gradient.device), tf.name_scope(part.clone.scope):
                    name = f"{variable.op.name}/accumulated"
                    self._dense[i] = tf.add(self._dense[i], gradient, name=name)
            else:
                self._dense[i] = gradient
            self.newest.append(self._dense[i].op)

    def result(self) -> list[GradientAndVariable]:
        """Returns the sums as `(gradient, variable)` pairs, see `accumulate`."""
        pairs: list[GradientAndVariable] = []
        with tf.device(self._clone.device), tf.name_scope(self._clone.scope):
            for dense, rows, variable in zip(self._dense, self._rows, self._variables, strict=True):
                terms = [[(term, variable)] for term in (dense, *rows) if term is not None]
                pairs += gradients_lib.sum_gradients(terms) if terms else [(None, variable)]
        return pairs


def _begin_after(
    done: Any, part: PartGradients, ops: Collection[Any], before: Collection[Any]
) -> None:
    """Adds `done` as a control input to the first ops of a part.

    The first ops are those that depend on no other op of the part.  Sources (variables, queues,
    constants) do not wait, as initializers and savers also run them outside of a step.  Ops in a
    while loop of TensorFlow 1 never come first: they depend on the op that enters the loop.

    Args:
      done: the op to wait for.
      part: the part.
      ops: all ops of the part.
      before: the ops that `done` depends on, which cannot wait for it.
    """
    values = [*part.losses, *(g for g, _ in part.gradients if g is not None)]
    flat = tf.nest.flatten(values, expand_composites=True)
    needed = graph_walk.ancestors((tensor.op for tensor in flat), known=before)
    own = needed.intersection(ops).difference(before)
    sources: set[Any] = set()
    new = {op for op in own if _is_source(op)}
    while new:  # a source depends on sources only
        found = {op for op in new if all(each in sources for each in _taken_from(op, own))}
        sources |= found
        new = (new - found) if found else set()
    for op in own - sources:
        if all(each in sources for each in _taken_from(op, own)):
            internals.add_control_inputs(op, [done])


def _taken_from(op: Any, ops: set[Any]) -> Iterable[Any]:
    """Returns the ops among `ops` that are inputs or control inputs of `op`."""
    needed = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
    return [each for each in needed if each in ops]


def _is_source(op: Any) -> bool:
    """Whether an op is a constant, a variable, or a queue's or table's handle."""
    if op.type in _SOURCES or placement.is_variable_op(op):
        return True
    if op.type == "Identity" and internals.is_reference(op.inputs[0]):
        return True  # the read op that TensorFlow creates with a reference variable
    return any(
        tensor.dtype == tf.resource or internals.is_reference(tensor) for tensor in op.outputs
    )
