"""Accumulators on the variables' devices, which sum the gradients of several replicas."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.collectives import carried_as, packing
from model_deploy.parameter_servers.receipts import Receipts

# Accumulators drop gradients of old steps; a gradient of this step is never dropped.
ANY_STEP = (1 << 63) - 1


def replaced(accumulator: Any, zeros: Any) -> Any:
    """Returns an op that replaces the content of an accumulator by zeros, which it takes out.

    Args:
      accumulator: a `tf.ConditionalAccumulator`.
      zeros: a tensor of a shape that the accumulator takes.
    """
    any_step = tf.constant(ANY_STEP, tf.int64)
    with tf.control_dependencies([accumulator.apply_grad(zeros, any_step)]):
        return accumulator.take_grad(1).op


class DenseAccumulator:
    """Averages dense gradients of a variable, or other tensors of its shape, on its device.

    Attributes:
      accumulator: the `tf.ConditionalAccumulator`.
      receipts: see `Receipts`.
    """

    def __init__(
        self,
        gradient: Any,
        variable: Any,
        num_replicas: int,
        replica_id: int,
        what: str = "gradients",
    ) -> None:
        self._dtype, self._shape = gradient.dtype, variable.shape
        self._gradient = tf.cast(gradient, carried_as(gradient.dtype))  # they have no bfloat16
        name = f"{variable.op.name}/{what}"
        self.receipts = Receipts(name, variable.device, num_replicas, replica_id)
        with tf.device(variable.device):
            # Without a shape: `shrink` replaces the content by a scalar.
            self.accumulator = tf.ConditionalAccumulator(self._gradient.dtype, shared_name=name)

    def add(self, stamp: Any, wire_dtype: tf.DType) -> Any:
        """Returns an op that adds this replica's gradient once, unless `stamp` is outdated."""
        del wire_dtype  # the gradient was moved here in this type already
        return self.receipts.once(
            stamp, lambda local_step: self.accumulator.apply_grad(self._gradient, local_step)
        )

    def take_mean(self, count: int) -> Any:
        """Returns the mean of at least `count` gradients; waits until there are that many."""
        mean = self.accumulator.take_grad(count)
        mean.set_shape(self._shape)
        return tf.cast(mean, self._dtype)

    def forget(self) -> Any:
        """Returns an op that drops the accumulated gradients."""
        return replaced(self.accumulator, tf.zeros(self._shape, self._gradient.dtype))

    def shrink(self) -> Any:
        """Returns an op that drops the accumulated gradients and frees the accumulator's memory."""
        with tf.control_dependencies([self.forget()]):
            return replaced(self.accumulator, tf.zeros([], self._gradient.dtype))


class RowAccumulator:
    """Averages the sparse gradients of a variable, on its device.

    TensorFlow's accumulator divides each row by the number of replicas that use the row.  To avoid
    that, replica k adds its row r as row r * num_replicas + k.  Each replica also adds a last row
    of zeros, from which the number of replicas that took part is known.

    Attributes:
      accumulator: the `tf.SparseConditionalAccumulator`.
      receipts: see `Receipts`.
    """

    def __init__(self, gradient: Any, variable: Any, num_replicas: int, replica_id: int) -> None:
        self._gradient = gradient
        self._num_replicas = num_replicas
        self._row_shape = variable.shape.as_list()[1:]
        self._num_rows = variable.shape.as_list()[0]
        self._device = variable.device
        # On the worker: the sum of rows that occur several times, in ascending order.
        indices, positions = tf.unique(tf.cast(gradient.indices, tf.int64))
        rows = tf.reshape(gradient.values, [-1, *self._row_shape])
        rows = tf.unsorted_segment_sum(rows, positions, tf.size(indices))
        order = tf.argsort(indices)
        indices = tf.concat([tf.gather(indices, order), [self._num_rows]], axis=0)
        self._indices = indices * num_replicas + replica_id
        last = tf.zeros([1, *self._row_shape], gradient.dtype)
        rows = tf.concat([tf.gather(rows, order), last], axis=0)
        self._rows = tf.cast(rows, carried_as(rows.dtype))
        name = f"{variable.op.name}/gradients"
        self.receipts = Receipts(name, variable.device, num_replicas, replica_id)
        with tf.device(variable.device):
            self.accumulator = tf.SparseConditionalAccumulator(self._rows.dtype, shared_name=name)

    def add(self, stamp: Any, wire_dtype: tf.DType) -> Any:
        """Returns an op that adds this replica's gradient once, unless `stamp` is outdated."""
        rows = packing.move(self._rows, self._rows.device, self._device, wire_dtype)
        return self.receipts.once(
            stamp,
            lambda local_step: self.accumulator.apply_grad(
                self._indices, rows, local_step=local_step
            ),
        )

    def take_mean(self, count: int) -> Any:
        """Returns the mean of at least `count` gradients; waits until there are that many."""
        indices, rows, _ = self.accumulator.take_grad(count)
        indices = indices // self._num_replicas
        is_last = tf.equal(indices, self._num_rows)  # the zero rows have the largest indices
        taking_part = tf.reduce_sum(tf.cast(is_last, tf.int32))
        num_rows = tf.size(indices) - taking_part
        rows = tf.reshape(rows[:num_rows], [-1, *self._row_shape])
        return tf.IndexedSlices(
            tf.cast(rows / tf.cast(taking_part, rows.dtype), self._gradient.dtype),
            tf.cast(indices[:num_rows], self._gradient.indices.dtype),
            tf.constant([self._num_rows, *self._row_shape], tf.int64),
        )

    def forget(self) -> Any:
        """Returns an op that drops the accumulated gradients."""
        zeros = tf.zeros([1, *self._row_shape], self._rows.dtype)
        added = self.accumulator.apply_grad(tf.constant([0], tf.int64), zeros, local_step=ANY_STEP)
        with tf.control_dependencies([added]):
            return self.accumulator.take_grad(1).values.op

    def shrink(self) -> Any:
        """Returns an op that drops the accumulated gradients and frees the accumulator's memory."""
        with tf.control_dependencies([self.forget()]):
            return self.forget()
