"""TensorFlow's optimizers with Keras' differences: initial slots, sparse rows, clipping, decay."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy.optimization import RowAdamWOptimizer


class Before(NamedTuple):
    """What a Keras optimizer does to a gradient and a variable before the update.

    Attributes:
      rate: the learning rate, a float scalar.
      weight_decay: fraction of a variable subtracted by a step at rate 1; None for no decay.
      is_decayed: whether a variable, of any shape, is decayed.
      clip: function that clips a dense gradient of any shape; None for no clipping.
    """

    rate: Any
    weight_decay: float | None = None
    is_decayed: Callable[[Any], bool] = lambda variable: True
    clip: Callable[[Any], Any] | None = None


class _WithBefore:
    """A mixin that clips each gradient and decays the variable before the optimizer's update."""

    before: Before
    _share: Any = None

    def after(self, before: Before) -> Any:
        """Sets what to do first; returns this optimizer."""
        self.before = before
        return self

    def apply_gradients(
        self, grads_and_vars: Sequence[Any], global_step: Any = None, name: str | None = None
    ) -> Any:
        """Clips, then applies gradients of the variables' shapes, or rows of them."""
        clip = self.before.clip
        if clip is not None:
            # Made dense: repeated rows must be summed before their norm is taken.
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
        """Returns a list with the op that decays a variable; [] if it is not decayed."""
        if not self.before.weight_decay or not self.before.is_decayed(variable):
            return []
        # After the gradient is computed: until then other ops may read the variable.
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
    """A mixin for optimizers that, in Keras, update rows without a gradient as well."""

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        dense = tf.math.unsorted_segment_sum(grad, indices, handle.shape[0])
        return self._resource_apply_dense(dense, handle)  # type: ignore[attr-defined]


class GradientDescent(_WithBefore, tf.train.GradientDescentOptimizer):
    """SGD without momentum."""


class _KerasMomentum(tf.train.Optimizer):
    """SGD with momentum as in Keras: a new learning rate affects future gradients only.

    `v = momentum * v - rate * g; w = w + v`.  In TensorFlow's optimizer the rate multiplies `v`, so
    a lower rate also scales down past gradients.
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
    """SGD with momentum, optionally Nesterov's."""


class Adam(_WithBefore, tf.train.AdamOptimizer):
    """Adam, and with weight decay AdamW."""


class RowAdam(RowAdamWOptimizer):
    """Adam, and with weight decay AdamW, at the cost of the rows of a step."""

    _is_decayed: Callable[[Any], bool]

    def after(self, before: Before) -> Any:
        """Sets the weight decay; returns this optimizer.

        Raises:
          ValueError: if gradients are to be clipped one by one, which makes them dense.
        """
        if before.clip is not None:
            raise ValueError(
                "clipnorm and clipvalue of the optimizer must not be set with by_rows=True, got "
                "one of them: global_clipnorm leaves gradients sparse"
            )
        self._weight_decay = before.weight_decay or 0.0
        self._is_decayed = before.is_decayed
        return self

    def _decays(self, variable: Any) -> bool:
        return bool(self._weight_decay) and self._is_decayed(variable)


class Adagrad(_WithBefore, tf.train.AdagradOptimizer):
    """Adagrad."""


class Adadelta(_AllRows, _WithBefore, tf.train.AdadeltaOptimizer):
    """Adadelta."""


class Ftrl(_AllRows, _WithBefore, tf.train.FtrlOptimizer):
    """FTRL-Proximal."""


class RMSProp(_AllRows, _WithBefore, tf.train.RMSPropOptimizer):
    """RMSprop whose mean square starts at 0, as in Keras; TensorFlow's starts at 1."""

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            # Makes the slots first, under the names that TensorFlow's optimizer looks for.
            self._zeros_slot(variable, "rms", self._name)
        super()._create_slots(var_list)
