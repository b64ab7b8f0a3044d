"""The batches of `input_fn`: one for each clone."""

from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals
from model_deploy.estimator import subgraphs

# Types of ops that give another value each time they run: the next element of a dataset or queue.
_TAKERS = (
    *("IteratorGetNext", "IteratorGetNextSync", "OptionalGetValue"),
    *("QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"),
    *("QueueDequeue", "QueueDequeueMany", "QueueDequeueUpTo"),
)


class Batches(Iterator[Any]):
    """Features and labels for one clone after the other.

    The first clone gets the tensors of `input_fn`.  For each other one what `input_fn` has built
    from the next element of a dataset or queue on is built once more, so that it takes the next
    batch.  What needs no dataset or queue, such as a constant, is the same for all.

    Args:
      features: what `input_fn` has returned: tensors of any shapes in dicts, tuples or lists.
      labels: the same; None without.
    """

    def __init__(self, features: Any, labels: Any) -> None:
        self._batch = (features, labels)
        flat = tf.nest.flatten(self._batch, expand_composites=True)
        tensors = [each for each in flat if isinstance(each, tf.Tensor)]
        self._ops = subgraphs.between(tensors, lambda op: op.type in _TAKERS)
        self._last_takers = [op for op in self._ops if op.type in _TAKERS]
        self._given = False

    def __next__(self) -> Any:
        """`(features, labels)` of the next clone, like those of `input_fn`."""
        if not self._given:
            self._given = True
            return self._batch
        made = subgraphs.copies_of(self._ops, {})
        takers = [copy for op, copy in made.items() if op.type in _TAKERS]
        for taker in takers:  # in the order of the clones, so that a run can be repeated
            internals.add_control_inputs(taker, self._last_takers)
        self._last_takers = takers
        flat = tf.nest.flatten(self._batch, expand_composites=True)
        flat = [
            subgraphs.copy_of(each, made) if isinstance(each, tf.Tensor) else each for each in flat
        ]
        return tf.nest.pack_sequence_as(self._batch, flat, expand_composites=True)
