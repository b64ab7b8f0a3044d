"""`Regularizers`: the losses that a `model_fn` finds in `REGULARIZATION_LOSSES`, once each.

A `model_fn` of Estimator adds regularization to its own loss, as `tf.losses.get_total_loss` does,
and is called for one part after another.  Regularizers of shared variables are called once, with
the variables: later parts find these losses.  With variables of its own a clone finds copies of
them.  Losses that `model_fn` adds itself come anew with each part, and only that part finds them.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.estimator import subgraphs
from model_deploy.losses import regularizer_scope


class Regularizers:
    """What the parts of one deployment find in the collection, in the order of their calls."""

    def __init__(self) -> None:
        self._num_before = len(_losses())
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
        made = self._of_first[self._num_before :]
        of_variables = [tf.convert_to_tensor(loss) for loss in made if regularizer_scope(loss)]
        _losses()[self._num_before :] = self._on_own_variables(of_variables)
        try:
            yield
        finally:
            _losses()[:] = self._of_first

    def _on_own_variables(self, losses: list[Any]) -> list[Any]:
        """The losses, scalars; copies where variables of this part stand for the first one's."""
        own = {
            first.op.outputs[0].ref(): variable.op.outputs[0]
            for first, variable in zip(self._variables, tf.global_variables(), strict=False)
            if first is not variable
        }
        firsts = [each.deref() for each in own]
        ops = subgraphs.between(losses, lambda op: False, firsts) if own else []
        return subgraphs.copied(losses, ops, own)


def _losses() -> list[Any]:
    losses: list[Any] = tf.get_collection_ref(tf.GraphKeys.REGULARIZATION_LOSSES)
    return losses
