"""Optimizers of `tf.contrib.opt` with decoupled weight decay: https://arxiv.org/abs/1711.05101."""

from typing import Any

import tensorflow.compat.v1 as tf


class DecoupledWeightDecayExtension:
    """Makes an optimizer shrink each variable by a share of it, before its own change of it.

    It comes before the optimizer among the base classes.  Neither is the
    share in the gradient, nor the learning rate in the share.  Where a gradient is sparse its rows
    shrink.

    Args:
      weight_decay: the share, a number or a scalar tensor.
      **kwargs: those of the optimizer.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight_decay = weight_decay
        self._decayed: set[str] | None = None  # names of variables; None for all

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """As the optimizer does; only `decay_var_list` shrink, if it is given."""
        self._decay_only(decay_var_list)
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self,
        grads_and_vars: Any,
        global_step: Any = None,
        name: str | None = None,
        decay_var_list: Any = None,
    ) -> Any:
        """As the optimizer does; only `decay_var_list` shrink, if it is given."""
        self._decay_only(decay_var_list)
        pairs = list(grads_and_vars)
        # No gradient may read a variable that has shrunk.
        with tf.control_dependencies([gradient for gradient, _ in pairs if gradient is not None]):
            return super().apply_gradients(pairs, global_step, name)  # type: ignore[misc]

    def _decay_only(self, variables: Any) -> None:
        if variables:
            self._decayed = {variable.op.name for variable in variables}

    def _after_decay(self, variable: Any, rows: Any = None) -> Any:
        """Ops that are made in the `with` block of this come after the variable has shrunk."""
        if self._decayed is not None and variable.op.name not in self._decayed:
            return tf.control_dependencies([])
        decay = tf.cast(self._weight_decay, variable.dtype.base_dtype)
        if rows is None:
            return tf.control_dependencies([tf.assign_sub(variable, decay * variable).op])
        rows, _ = tf.unique(rows)
        change = decay * tf.gather(variable, rows)
        return tf.control_dependencies([_operation(tf.scatter_sub(variable, rows, change))])

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        with self._after_decay(var, grad.indices):
            return super()._apply_sparse_duplicate_indices(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        with self._after_decay(handle, indices):
            return super()._resource_apply_sparse_duplicate_indices(  # type: ignore[misc]
                grad, handle, indices
            )


def _operation(value: Any) -> Any:
    return getattr(value, "op", value)


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """A class like an optimizer's, whose first argument is the weight decay.

    Args:
      base_optimizer: a class of `tf.train`.
    """

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        def __init__(self, weight_decay: Any, *args: Any, **kwargs: Any) -> None:
            base_optimizer.__init__(self, *args, **kwargs)  # type: ignore[misc]
            self._weight_decay, self._decayed = weight_decay, None

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
    """`tf.train.MomentumOptimizer` with decoupled weight decay.

    Args:
      weight_decay: see `DecoupledWeightDecayExtension`.
      learning_rate: see `tf.train.MomentumOptimizer`.
      momentum: see there.
      use_locking: see there.
      name: see there.
      use_nesterov: see there.
    """

    def __init__(  # noqa: PLR0917 - the arguments of TensorFlow 1
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
    """`tf.train.AdamOptimizer` with decoupled weight decay.

    Args:
      weight_decay: see `DecoupledWeightDecayExtension`.
      learning_rate: see `tf.train.AdamOptimizer`.
      beta1: see there.
      beta2: see there.
      epsilon: see there.
      use_locking: see there.
      name: see there.
    """

    def __init__(  # noqa: PLR0917 - the arguments of TensorFlow 1
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )
