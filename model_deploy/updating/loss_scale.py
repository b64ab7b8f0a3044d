"""Loss scaling: keeps small gradients representable in float16; skips updates that overflow.

Section 3.2 of Micikevicius et al., https://arxiv.org/abs/1710.03740: small gradients become 0 in
float16.  So the loss is multiplied by a scale before it is differentiated, and the gradients are
divided by the scale in float32.  Too large a scale makes them infinite; that update is skipped.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.gradients import GradientAndVariable, scale_gradient, values_of
from model_deploy.settings import DYNAMIC
from model_deploy.updating.conditions import Condition

# The first value of a dynamic scale, and after how many steps in a row it is doubled.
FIRST_SCALE, STEPS_TO_DOUBLE = 2.0**15, 2000
_LEAST, _LARGEST = 1.0, 2.0**24
# After so many skipped updates in a row the cause is not the scale: training ends.
MOST_LEFT_OUT = 100


class LossScale:
    """The loss scale, in variables `loss_scale/...` that checkpoints save.

    A dynamic scale is halved after each skipped update, and doubled after `STEPS_TO_DOUBLE`
    updates in a row.

    Args:
      setting: `dynamic`, or the scale itself.
      device: device, or device function, of the variables.

    Attributes:
      value: the scale of the step, a float32 scalar.
    """

    def __init__(self, setting: float | str, device: Any) -> None:
        self._is_dynamic = setting == DYNAMIC
        first = FIRST_SCALE if setting == DYNAMIC else float(setting)
        with tf.device(device), tf.variable_scope("loss_scale", reuse=tf.AUTO_REUSE):
            self._scale = _variable("value", first, tf.float32)
            # Updates made in a row; a negative number counts updates skipped in a row.
            self._in_a_row = _variable("in_a_row", 0, tf.int64)
            self._left_out = _variable("left_out", 0, tf.int64)
        with tf.name_scope("loss_scale_of_step"):
            self.value = tf.identity(_read_copy(self._scale))
            self._inverse = 1 / self.value

    def state(self) -> tuple[Any, Any, Any]:
        """Reads the current scale, the number of skipped updates, and whether the last was skipped.

        Returns:
          Scalars on the device of the variables: float32, int64 and bool.
        """
        with tf.device(self._scale.device), tf.name_scope("loss_scale_state"):
            return (
                _read_copy(self._scale),
                _read_copy(self._left_out),
                _read_copy(self._in_a_row) < 0,
            )

    def scaling(self, optimizer: Any) -> "ScaledGradients":
        """Returns an object whose `compute_gradients` replaces that of a `tf.train.Optimizer`."""
        return ScaledGradients(optimizer, self.value, self._inverse)

    def condition(
        self,
        gradients: Sequence[GradientAndVariable],
        first: Sequence[Any] = (),
        *,
        adjusts: bool = True,
    ) -> Condition:
        """Returns the condition that gradients are finite.

        Args:
          gradients: `(gradient, variable)` pairs, see `ScaledGradients`; None counts as finite.
          first: ops, or tensors of any shapes, that the update waits for.
          adjusts: whether this update adjusts the scale; with several updates a step, one does.
        """
        with tf.control_dependencies(first), tf.name_scope("loss_scale_check"):
            finite = tf.reduce_all([_is_finite(values) for values in values_of(gradients)])
            return Condition(finite, first, self._adjust(finite) if adjusts else ())

    def _adjust(self, finite: Any) -> list[Any]:
        """Returns ops that count the update and change a dynamic scale."""
        with tf.device(self._scale.device):
            scale, in_a_row = _read_copy(self._scale), _read_copy(self._in_a_row)
            in_a_row = tf.where(finite, tf.maximum(in_a_row, 0) + 1, tf.minimum(in_a_row, 0) - 1)
            checked = tf.debugging.Assert(
                in_a_row > -MOST_LEFT_OUT,
                [
                    f"gradients must be finite, got infinite or NaN ones in {MOST_LEFT_OUT} steps "
                    "in a row; the last loss scale was",
                    scale,
                ],
            )
            values = {self._in_a_row: in_a_row}
            if self._is_dynamic:
                enough = in_a_row >= STEPS_TO_DOUBLE
                values[self._in_a_row] = tf.where(enough, tf.zeros_like(in_a_row), in_a_row)
                larger = tf.where(enough, tf.minimum(2 * scale, _LARGEST), scale)
                values[self._scale] = tf.where(finite, larger, tf.maximum(scale / 2, _LEAST))
            with tf.control_dependencies([checked, *values.values()]):
                assigned = [tf.assign(variable, value).op for variable, value in values.items()]
                counted = tf.cast(tf.logical_not(finite), tf.int64)
                return [*assigned, tf.assign_add(self._left_out, counted, use_locking=True).op]


class ScaledGradients:
    """Computes gradients by differentiating the scaled loss and dividing by the scale.

    Args:
      optimizer: a `tf.compat.v1.train.Optimizer`.
      scale: a float32 scalar.
      inverse: 1 / `scale`.
    """

    def __init__(self, optimizer: Any, scale: Any, inverse: Any) -> None:
        self._optimizer = optimizer
        self._scale = scale
        self._inverse = inverse

    def compute_gradients(self, loss: Any, **kwargs: Any) -> list[GradientAndVariable]:
        """Returns the gradients of `loss`, a scalar.

        Returns:
          `(gradient, variable)` pairs; a gradient has the variable's shape, is an
          `IndexedSlices` over its rows, or None.
        """
        scaled = loss * tf.cast(self._scale, loss.dtype)
        pairs = self._optimizer.compute_gradients(scaled, **kwargs)
        return [(_scaled_by(gradient, self._inverse), variable) for gradient, variable in pairs]


def _variable(name: str, value: float, dtype: Any) -> Any:
    return tf.get_variable(name, [], dtype, tf.constant_initializer(value, dtype), trainable=False)


def _read_copy(variable: Any) -> Any:
    # The value read from a reference variable changes when the variable does.
    with tf.device(variable.device):
        return tf.raw_ops.DeepCopy(x=variable.read_value())


def _scaled_by(gradient: Any, factor: Any) -> Any:
    if gradient is None:
        return None
    with tf.device(gradient.device):
        return scale_gradient(gradient, tf.cast(factor, gradient.dtype))


def _is_finite(values: Any) -> Any:
    with tf.device(values.device):
        return tf.reduce_all(tf.math.is_finite(values))
