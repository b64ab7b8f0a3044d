"""`Regularizers`: the losses that a `model_fn` finds in `REGULARIZATION_LOSSES`, once each.

A `model_fn` of Estimator adds regularization to its own loss, as `tf.losses.get_total_loss` does,
and is called for one part after another.  Regularizers of shared variables are called once, with
the variables: later parts find these losses.  With variables of its own a clone finds copies of
them.  Losses that `model_fn` adds itself come anew with each part, and only that part finds them.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk
from model_deploy.losses import regularizer_scope


class Regularizers:
    """What the parts of one deployment find in the collection, in the order of their calls."""

    def __init__(self) -> None:
        self._before = list(_losses())
        self._of_first: list[Any] | None = None
        self._variables: list[Any] = []

    @contextlib.contextmanager
    def of_part(self) -> Iterator[None]:
        """A `with` block in which `model_fn` is called for the next part.

        Afterwards the collection has the losses of the first part.
        """
        if self._of_first is None:
            yield
            self._of_first, self._variables = list(_losses()), tf.global_variables()
            return
        pairs = zip(self._variables, tf.global_variables(), strict=False)
        own = {first.op: variable for first, variable in pairs if first is not variable}
        before = set(map(id, self._before))
        made = [loss for loss in self._of_first if id(loss) not in before]
        of_variables = [_on_variables(loss, own) for loss in made if regularizer_scope(loss)]
        _losses()[:] = [*self._before, *of_variables]
        try:
            yield
        finally:
            _losses()[:] = self._of_first


def _losses() -> list[Any]:
    losses: list[Any] = tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES)
    return losses


def _on_variables(loss: Any, own: Mapping[Any, Any]) -> Any:
    """The loss, a scalar, on other variables.

    Args:
      loss: made of variables by a regularizer.
      own: by the op of a variable the variable to take in its place, of the same shape and dtype.
    """
    needed = graph_walk.ancestors([loss.op])
    replaced = needed & own.keys()
    if not replaced:
        return loss
    copied = graph_walk.descendants(replaced, needed) - replaced
    graph = tf.get_default_graph()
    nodes = tf.GraphDef(versions=graph.graph_def_versions)
    inputs = {}
    for op in copied:
        node = nodes.node.add()
        node.CopyFrom(op.node_def)
        node.attr.pop("_class", None)
        node.device = ""
        del node.input[len(op.inputs) :]  # control inputs
        for tensor in op.inputs:
            if tensor.op in own:
                inputs[tensor.name] = own[tensor.op].op.outputs[0]
            elif tensor.op not in copied:
                inputs[tensor.name] = tensor
    variable = own[next(iter(replaced))]
    with tf.device(variable.device):
        [made] = tf.import_graph_def(nodes, inputs, [f"{loss.op.name}:0"], name="regularizer")
    return made
