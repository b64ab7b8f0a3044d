"""`LazyAdamOptimizer` of `tf.contrib.opt`: Adam for the rows of a step alone."""

from typing import Any

import tensorflow.compat.v1 as tf


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam that leaves the moments and values of rows without gradients as they are.

    So it is not the algorithm of `tf.train.AdamOptimizer`, in which the moments of all rows decay
    in each step and move them; `RowAdamOptimizer` is, at the same cost.  For dense gradients all
    three are the same.  Its name and steps are those of `tf.contrib.opt`, its arguments those of
    `tf.train.AdamOptimizer`.
    """

    def _apply_sparse(self, grad: Any, var: Any) -> tf.Operation:
        return self._update_rows(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        return self._update_rows(grad, var, indices)

    def _update_rows(self, gradient: Any, variable: Any, rows: Any) -> tf.Operation:
        """A step of https://arxiv.org/abs/1412.6980, algorithm 1, of some rows of a variable."""
        kind = variable.dtype.base_dtype
        beta1, beta2, rate, epsilon = (
            tf.cast(each, kind)
            for each in (self._beta1_t, self._beta2_t, self._lr_t, self._epsilon_t)
        )
        powers = [tf.cast(each, kind) for each in self._get_beta_accumulators()]
        rate *= tf.sqrt(1 - powers[1]) / (1 - powers[0])
        first, second = self.get_slot(variable, "m"), self.get_slot(variable, "v")
        new_first = beta1 * tf.gather(first, rows) + (1 - beta1) * gradient
        new_second = beta2 * tf.gather(second, rows) + (1 - beta2) * tf.square(gradient)
        step = rate * new_first / (tf.sqrt(new_second) + epsilon)
        with tf.control_dependencies([new_first, new_second, step]):
            return tf.group(
                tf.scatter_update(first, rows, new_first, use_locking=self._use_locking),
                tf.scatter_update(second, rows, new_second, use_locking=self._use_locking),
                tf.scatter_sub(variable, rows, step, use_locking=self._use_locking),
            )
