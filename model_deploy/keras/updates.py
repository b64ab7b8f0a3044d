"""TensorFlow's optimizers with what Keras' do otherwise: the start, the rows, what comes before."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf


class Before(NamedTuple):
    """What a Keras optimizer does before its update.

    Attributes:
      rate: its learning rate, a float scalar.
      weight_decay: share of a variable that a step at rate 1 takes from it; None for none.
      is_decayed: says of a variable, of any shape, whether it is decayed.
      clip: makes a gradient, dense and of any shape, into the one to use; None for as it is.
    """

    rate: Any
    weight_decay: float | None = None
    is_decayed: Callable[[Any], bool] = lambda variable: True
    clip: Callable[[Any], Any] | None = None


class _WithBefore:
    """Mixed in before an optimizer: clips each gradient, then decays the variable, then updates."""

    before: Before
    _share: Any = None

    def after(self, before: Before) -> Any:
        """This optimizer, which now does `before` first."""
        self.before = before
        return self

    def apply_gradients(
        self, grads_and_vars: Sequence[Any], global_step: Any = None, name: str | None = None
    ) -> Any:
        """As that of the optimizer; gradients have the shapes of the variables, or are rows."""
        clip = self.before.clip
        if clip is not None:
            # Rows may come several times: only their sum has the norm that counts.
            grads_and_vars = [
                (gradient if gradient is None else clip(tf.convert_to_tensor(gradient)), variable)
                for gradient, variable in grads_and_vars
            ]
        return super().apply_gradients(  # type: ignore[misc]
            grads_and_vars, global_step=global_step, name=name
        )

    def _prepare(self) -> None:
        super()._prepare()  # type: ignore[misc]
        if self.before.weight_decay:
            self._share = tf.convert_to_tensor(self.before.rate) * self.before.weight_decay

    def _decayed(self, variable: Any, gradient: Any) -> list[Any]:
        """The op that decays a variable; none for one that is not decayed."""
        if not self.before.weight_decay or not self.before.is_decayed(variable):
            return []
        # Not before the gradient is there: until then others may read the variable.
        with tf.control_dependencies([gradient]):
            lost = tf.cast(self._share, variable.dtype.base_dtype) * variable.read_value()
            return [variable.assign_sub(lost, read_value=False)]

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        with tf.control_dependencies(self._decayed(handle, grad)):
            return super()._resource_apply_dense(grad, handle)  # type: ignore[misc]

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        with tf.control_dependencies(self._decayed(handle, grad)):
            return super()._resource_apply_sparse_duplicate_indices(  # type: ignore[misc]
                grad, handle, indices
            )


class _AllRows:
    """Mixed in where TensorFlow leaves rows without a gradient alone, and Keras does not."""

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        dense = tf.math.unsorted_segment_sum(grad, indices, handle.shape[0])
        return self._resource_apply_dense(dense, handle)  # type: ignore[attr-defined]


class GradientDescent(_WithBefore, tf.train.GradientDescentOptimizer):
    """SGD without momentum."""


class _KerasMomentum(tf.train.Optimizer):
    """SGD with momentum, where a change of the rate changes what is to come.

    `v = momentum * v - rate * g; w = w + v`.  TensorFlow's multiplies by the rate only when it
    updates: after a fall of the rate, the steps of the past are smaller at once.
    """

    def __init__(self, rate: Any, momentum: float, nesterov: bool) -> None:
        super().__init__(use_locking=False, name="Momentum")
        self._rate, self._momentum, self._nesterov = rate, momentum, nesterov
        self._rate_tensor: Any = None

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def _prepare(self) -> None:
        self._rate_tensor = tf.convert_to_tensor(self._rate, name="learning_rate")

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return tf.raw_ops.ResourceApplyKerasMomentum(
            var=handle.handle,
            accum=self.get_slot(handle, "momentum").handle,
            lr=tf.cast(self._rate_tensor, grad.dtype),
            grad=grad,
            momentum=tf.constant(self._momentum, grad.dtype),
            use_nesterov=self._nesterov,
        )


class Momentum(_AllRows, _WithBefore, _KerasMomentum):
    """SGD with momentum, of Nesterov's kind or not."""


class Adam(_WithBefore, tf.train.AdamOptimizer):
    """Adam, and with weight decay AdamW."""


class Adagrad(_WithBefore, tf.train.AdagradOptimizer):
    """Adagrad."""


class Adadelta(_AllRows, _WithBefore, tf.train.AdadeltaOptimizer):
    """Adadelta."""


class Ftrl(_AllRows, _WithBefore, tf.train.FtrlOptimizer):
    """FTRL-Proximal."""


class RMSProp(_AllRows, _WithBefore, tf.train.RMSPropOptimizer):
    """RMSprop whose mean square starts at 0; that of TensorFlow starts at 1."""

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            # Those that TensorFlow's is about to look for.
            self._zeros_slot(variable, "rms", self._name)
        super()._create_slots(var_list)
