"""DLRM by hand for `ParameterServerStrategy`: fixed tables on parameter servers, sparse updates."""

from typing import Any

import tensorflow as tf

from benchmarks import dlrm_work, ps_network
from benchmarks.ps_strategy_peer import variable_of
from examples import dlrm


def batches() -> Any:
    """A `tf.data.Dataset` without end of numbers, ids and labels."""
    made = dlrm_work.clicks(dlrm_work.PS_BATCH_SIZE)
    data = tf.data.Dataset.from_tensor_slices((made.numbers, made.ids, made.labels))
    return data.repeat().prefetch(2)


class StrategyNetwork:
    """The network of `examples.dlrm`, updated by gradient descent.

    Args:
      rows_once: whether each row crosses once per step, not once for each of its examples.
    """

    def __init__(self, *, rows_once: bool) -> None:
        self._rows_once = rows_once
        width = dlrm_work.WIDTH
        self._tables = [
            variable_of(tf.random.normal([count, width], stddev=0.05))
            for count in dlrm.CARDINALITIES
        ]
        self._bottom = _layers(dlrm.NUM_NUMBERS, (*dlrm_work.BOTTOM, width))
        self._top = _layers(dlrm_work.num_pairs() + width, (*dlrm_work.TOP, 1))
        self._step = variable_of(tf.constant(0, tf.int64), trainable=False)

    def step(self, numbers: Any, ids: Any, labels: Any) -> Any:
        """One update; returns the loss."""
        # Read once: each use of a variable would fetch it again.
        variables = [*self._bottom, *self._top]
        weights = [tf.convert_to_tensor(variable) for variable in variables]
        wanted, places = zip(*(self._wanted(each) for each in tf.unstack(ids, axis=1)), strict=True)
        rows = [
            tf.nn.embedding_lookup(table, each)
            for table, each in zip(self._tables, wanted, strict=True)
        ]
        with tf.GradientTape() as tape:
            tape.watch([weights, rows])
            dense = tf.nn.relu(_apply(tf.math.log1p(numbers), weights[: len(self._bottom)]))
            found = [
                each if place is None else tf.gather(each, place)
                for each, place in zip(rows, places, strict=True)
            ]
            pairs = dlrm.interactions(tf.stack([dense, *found], 1))
            top = weights[len(self._bottom) :]
            logits = _apply(tf.concat([dense, pairs], 1), top)[:, 0]
            entropies = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(entropies)
        of_weights, of_rows = tape.gradient(loss, [weights, rows])
        for variable, gradient in zip(variables, of_weights, strict=True):
            variable.assign_sub(ps_network.LEARNING_RATE * gradient)
        for table, each, gradient in zip(self._tables, wanted, of_rows, strict=True):
            change = ps_network.LEARNING_RATE * tf.convert_to_tensor(gradient)
            table.scatter_sub(tf.IndexedSlices(change, each))
        self._step.assign_add(1)
        return loss

    def _wanted(self, ids: Any) -> tuple[Any, Any]:
        """Returns the ids to look up, and which of them each example has; None for one each."""
        return tf.unique(ids) if self._rows_once else (ids, None)


def _layers(inputs: int, units: tuple[int, ...]) -> list[Any]:
    """Weights and biases of fully connected layers, one after the other."""
    made = []
    for shape in dlrm_work.mlp_shapes(inputs, units):
        made.append(variable_of(tf.random.normal(shape, stddev=shape[0] ** -0.5)))
        made.append(variable_of(tf.zeros(shape[1])))
    return made


def _apply(net: Any, weights: list[Any]) -> Any:
    """Fully connected layers with ReLU in between."""
    for i in range(0, len(weights), 2):
        net = tf.nn.relu(net) if i else net
        net = net @ weights[i] + weights[i + 1]
    return net
