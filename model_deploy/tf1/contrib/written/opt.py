"""`tf.contrib.opt`: optimizers around and beside those of `tf.train`."""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.optimization import LazyAdamOptimizer

__all__ = [
    "LazyAdamOptimizer",
    "MovingAverageOptimizer",
    "NadamOptimizer",
    "clip_gradients_by_global_norm",
]


class MovingAverageOptimizer(tf.train.Optimizer):
    """An optimizer that keeps moving averages of the variables that another one trains.

    `swapping_saver` saves the averages under the names of the variables, so that evaluation reads
    averages and knows nothing of them.

    Args:
      opt: the optimizer that trains.
      average_decay: see `tf.train.ExponentialMovingAverage`.
      num_updates: see there; None keeps the decay as it is.
      sequential_update: whether averages follow the values after the step, not before it.
    """

    def __init__(
        self,
        opt: tf.train.Optimizer,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ) -> None:
        super().__init__(False, "MovingAverage")
        self._optimizer = opt
        self._average = tf.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._sequential_update = sequential_update
        self._averages: dict[str, tf.Variable] | None = None

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer that trains does."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        """A step of the optimizer, and of the averages of all variables that have gradients.

        Args:
          grads_and_vars: pairs of a gradient or None, and a variable.
          global_step: counts the step.
          name: of the op.
        """
        pairs = list(grads_and_vars)
        train_op = self._optimizer.apply_gradients(pairs, global_step=global_step, name=name)
        trained = [variable for gradient, variable in pairs if gradient is not None]
        with tf.control_dependencies([train_op] if self._sequential_update else []):
            average_op = self._average.apply(trained)
        self._averages = {each.op.name: self._average.average(each) for each in trained}
        return tf.group(train_op, average_op, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> tf.train.Saver:
        """A saver for which a variable and its average have each other's names.

        Args:
          var_list: variables or a dict from names to variables; all global ones by default.  A
            variable and its average must both be in it.
          name: of the ops.
          **kwargs: further ones of `tf.train.Saver`.

        Raises:
          RuntimeError: before `apply_gradients`.
          ValueError: where a variable is without its average, or an average alone.
        """
        if self._averages is None:
            raise RuntimeError("swapping_saver must be called after apply_gradients or minimize")
        if not isinstance(var_list, dict):
            var_list = {each.op.name: each for each in var_list or tf.global_variables()}
        names = {variable.op.name: key for key, variable in var_list.items()}
        swapped = dict(var_list)
        for name_of_variable, average in self._averages.items():
            own, other = names.get(name_of_variable), names.get(average.op.name)
            if own is None and other is None:
                continue
            if own is None or other is None:
                raise ValueError(
                    f"var_list must have {name_of_variable} and {average.op.name} or none of the "
                    f"two, got only {name_of_variable if other is None else average.op.name}"
                )
            swapped[own], swapped[other] = var_list[other], var_list[own]
        return tf.train.Saver(swapped, name=name, **kwargs)

    def get_slot(self, var: Any, name: str) -> Any:
        """A slot of the optimizer that trains."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The names of the slots of the optimizer that trains."""
        names: list[str] = self._optimizer.get_slot_names()
        return names

    def variables(self) -> list[Any]:
        """The variables of the optimizer that trains; averages are not among them."""
        variables: list[Any] = self._optimizer.variables()
        return variables


class NadamOptimizer(tf.train.AdamOptimizer):
    """Adam with Nesterov's momentum, as TensorFlow's `ApplyAdam` computes it.

    With the moments `m` and `v` after a step and its gradient `g`, a value moves by
    `rate * (beta1 * m + (1 - beta1) * g) / (sqrt(v) + epsilon)`
    (https://cs229.stanford.edu/proj2015/054_report.pdf, without the schedule of the momentum).
    """

    def _apply_dense(self, grad: Any, var: Any) -> tf.Operation:
        return self._nesterov(tf.raw_ops.ApplyAdam, grad, var, lambda each: each)

    def _resource_apply_dense(self, grad: Any, var: Any) -> tf.Operation:
        return self._nesterov(tf.raw_ops.ResourceApplyAdam, grad, var, lambda each: each.handle)

    def _nesterov(self, op: Any, gradient: Any, variable: Any, state: Any) -> Any:
        beta1_power, beta2_power = self._get_beta_accumulators()
        kind = gradient.dtype.base_dtype
        return op(
            var=state(variable),
            m=state(self.get_slot(variable, "m")),
            v=state(self.get_slot(variable, "v")),
            beta1_power=tf.cast(beta1_power, kind),
            beta2_power=tf.cast(beta2_power, kind),
            lr=tf.cast(self._lr_t, kind),
            beta1=tf.cast(self._beta1_t, kind),
            beta2=tf.cast(self._beta2_t, kind),
            epsilon=tf.cast(self._epsilon_t, kind),
            grad=gradient,
            use_locking=self._use_locking,
            use_nesterov=True,
        )

    def _apply_sparse(self, grad: Any, var: Any) -> tf.Operation:
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> tf.Operation:
        dense = tf.convert_to_tensor(tf.IndexedSlices(grad, indices, tf.shape(var)))
        return self._resource_apply_dense(dense, var)


def clip_gradients_by_global_norm(gradients_variables: Any, clip_norm: float = 20.0) -> Any:
    """Gradients scaled so that the norm of all of them together is at most `clip_norm`.

    Args:
      gradients_variables: pairs of a gradient or None, and a variable.
      clip_norm: the greatest norm.

    Returns:
      The pairs, with the new gradients.
    """
    gradients, variables = zip(*gradients_variables, strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
    return list(zip(clipped, variables, strict=True))
