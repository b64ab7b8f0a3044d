"""Adam with decoupled weight decay."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checks import check_at_least
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY, check_pattern, is_excluded


class AdamWOptimizer(tf.train.AdamOptimizer):
    """AdamW (Loshchilov and Hutter, https://arxiv.org/abs/1711.05101, algorithm 2).

    With gradient `g`, moments `m` and `v` that start at 0, step `t` from 1, and rate `a`:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g ** 2
        w = w - a * weight_decay * w
              - a * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon)

    As in Keras and PyTorch the decay is multiplied by the scheduled learning rate; in the paper
    only by the schedule, so the paper's decay is `weight_decay` times the initial rate.  `epsilon`
    is added as in TensorFlow's and Keras' Adam, see the end of section 2 of
    https://arxiv.org/abs/1412.6980; PyTorch adds it after the correction of `v`.

    A sparse gradient is treated as a dense one: all rows are decayed, and their moments change, in
    each step.  Each update decays once, whatever the number of clones.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      weight_decay: fraction of a variable subtracted by a step at rate 1.
      beta1: decay of the first moment.
      beta2: decay of the second moment.
      epsilon: added to the divisor.
      no_weight_decay: regular expression, searched in the names of variables, for those not to
        decay; parts and copies of a variable count by its own name.  '' decays all.
      use_locking: whether updates lock the variables.
      name: of slots and ops.

    Raises:
      ValueError: naming the argument, if `weight_decay` is less than 0 or `no_weight_decay` is no
        regular expression.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        *,
        no_weight_decay: str = NO_WEIGHT_DECAY,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        check_at_least("weight_decay", weight_decay, 0)
        check_pattern("no_weight_decay", no_weight_decay)
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._no_weight_decay = no_weight_decay
        self._locks = use_locking
        self._share: Any = None

    def _prepare(self) -> None:
        super()._prepare()
        rate = self._learning_rate() if callable(self._learning_rate) else self._learning_rate
        self._share = tf.convert_to_tensor(rate) * self._weight_decay

    def _decays(self, variable: Any) -> bool:
        """Whether a variable, of any shape, is decayed."""
        return bool(self._weight_decay) and not is_excluded(variable, self._no_weight_decay)

    def _decayed(self, variable: Any, gradient: Any) -> list[Any]:
        """Returns a list with the op that decays a variable; [] if it is not decayed."""
        if not self._decays(variable):
            return []
        # After the gradient is computed: until then other ops may read the variable.
        with tf.control_dependencies([gradient]):
            share = tf.cast(self._share, variable.dtype.base_dtype)
            lost = share * variable.read_value()
            return [variable.assign_sub(lost, use_locking=self._locks, read_value=False)]

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies(self._decayed(var, grad)):
            return super()._apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        with tf.control_dependencies(self._decayed(handle, grad)):
            return super()._resource_apply_dense(grad, handle)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies(self._decayed(var, grad.values)):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        with tf.control_dependencies(self._decayed(handle, grad)):
            return super()._resource_apply_sparse(grad, handle, indices)
