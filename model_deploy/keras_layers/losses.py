"""`LayerLosses`: the losses that layers add, and their regularizers, each counted once."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import graph_walk, internals

_COLLECTIONS = (tf.GraphKeys.LOSSES, tf.GraphKeys.REGULARIZATION_LOSSES)


class LayerLosses:
    """The losses of the layers that are called for one clone."""

    def __init__(self) -> None:
        self._added: list[tuple[Any, Any]] = []
        self._regularization: dict[int, Any] = {}
        # Keeps what the keys are ids of.
        self._regularized: list[Any] = []

    def add(self, layer: Any, losses: Sequence[Any]) -> None:
        """Notes what a layer has added: tensors of any shapes."""
        self._added += [(layer, loss) for loss in losses]

    def of(self, layer: Any) -> list[Any]:
        """The losses of a layer and its sublayers in this clone, each always the same tensor."""
        layers = {id(each) for each in internals.sublayers(layer)}
        added = [loss for owner, loss in self._added if id(owner) in layers]
        return added + self._regularization_of(layer)

    def collect(self, layers: Sequence[Any]) -> None:
        """Adds losses to the graph's collections, but those that are part of a loss already.

        Adds to `LOSSES` and `REGULARIZATION_LOSSES`.

        Args:
          layers: whose regularizers count.
        """
        counted = self._counted()
        for _, loss in self._added:
            if loss.op not in counted:
                tf.add_to_collection(tf.GraphKeys.LOSSES, _scalar(loss))
                counted.add(loss.op)
        for layer in layers:
            for loss in self._regularization_of(layer):
                if loss.op not in counted:
                    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, _scalar(loss))
                    counted.add(loss.op)

    def _counted(self) -> set[Any]:
        if not self._added and not self._regularization:
            return set()
        items = [item for key in _COLLECTIONS for item in tf.get_collection(key)]
        return graph_walk.ancestors(item.op for item in items)

    def _regularization_of(self, layer: Any) -> list[Any]:
        found = []
        for of, regularize in internals.regularizers(layer):
            if id(of) not in self._regularization:
                self._regularized.append(of)
                self._regularization[id(of)] = _regularization(of, regularize)
            found.append(self._regularization[id(of)])
        return [loss for loss in found if loss is not None]


def _regularization(of: Any, regularize: Any) -> Any:
    """A scalar, named so that copies of a clone leave it to the first one."""
    name = getattr(internals.tf_variable(of), "name", None) or "layers/"
    with tf.name_scope(f"{name.split(':')[0].rstrip('/')}/Regularizer/"):
        loss = regularize()
        return None if loss is None else tf.convert_to_tensor(loss)


def _scalar(loss: Any) -> Any:
    """As Keras counts it: the sum of all values, as float32."""
    with tf.name_scope(f"{loss.op.name}/"):
        loss = tf.cast(loss, tf.float32)
        return loss if loss.shape.rank == 0 else tf.reduce_sum(loss)
