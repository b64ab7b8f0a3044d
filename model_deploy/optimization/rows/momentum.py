"""`RowMomentumOptimizer` and `RowRMSPropOptimizer`: the dense ones at the cost of a step's rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.optimization.rows import fading
from model_deploy.optimization.rows.history import STEPS_KEPT, History
from model_deploy.optimization.rows.row_optimizer import Rest, RowOptimizer, faded, number


class _WithMomentum(RowOptimizer):
    """What rows miss of steps that fade by a momentum: a mixin."""

    def _check_momentum(self) -> None:
        # As TensorFlow's kernels have it.
        self._fades_by = float(np.float32(number("momentum", self._momentum)))
        self._fading = fading.geometric(self._fades_by, "momentum", STEPS_KEPT - 2)

    def _fresh(self, variable: Any) -> Sequence[float]:
        del variable
        return [0.0]


class RowMomentumOptimizer(_WithMomentum, tf.train.MomentumOptimizer):
    """Momentum, whose steps cost the rows that they touch: the table of a dense gradient.

    It equals `tf.train.MomentumOptimizer` with dense gradients, where the momentum of all rows
    moves and fades in each step; with sparse ones that optimizer leaves all rows but those of the
    step as they are.  A row with accumulator `a` that has rested for k steps has `momentum ** k *
    a`, and has moved by the sum of `rate[i] * momentum ** i * a` over these steps, once more times
    `momentum` with Nesterov's (https://proceedings.mlr.press/v28/sutskever13.html).

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      momentum: a number, at least 0; so much less than 1 that it fades within 8,000 steps.
      use_locking: whether updates of variables with dense gradients lock them.
      name: of slots and ops.
      use_nesterov: whether steps are Nesterov's.

    Raises:
      ValueError: if the momentum is no number, or does not fade.
    """

    _slots_of_rows = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: float,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, momentum, use_locking, name, use_nesterov)
        self._check_momentum()

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        del variable
        rate = tf.cast(self._learning_rate_tensor, tf.float64)
        return history.add_step(rate * self._fading.terms[1:])

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        [accumulated], [missed] = slots, rest.numbers
        if self._use_nesterov:
            missed = missed * tf.constant(self._fades_by, missed.dtype)
        return value - accumulated * missed, [faded(accumulated, self._fades_by, rest)]

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        del variable
        rate = tf.cast(self._learning_rate_tensor, value.dtype)
        momentum = tf.cast(self._momentum_tensor, value.dtype)
        accumulated = slots[0] * momentum + gradient
        moved = gradient + accumulated * momentum if self._use_nesterov else accumulated
        return value - rate * moved, [accumulated]


class RowRMSPropOptimizer(_WithMomentum, tf.train.RMSPropOptimizer):
    """RMSProp, whose steps cost the rows that they touch: the table of a dense gradient.

    It equals `tf.train.RMSPropOptimizer` with dense gradients, where the means of all rows decay
    and their momentum moves them in each step; with sparse ones that optimizer leaves all rows but
    those of the step as they are.  A row with momentum `u` that has rested for k steps has moved by
    the sum of `momentum ** i * u` over these steps, whatever the rate was.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      decay: decay of the means, a number.
      momentum: a number, at least 0; so much less than 1 that it fades within 8,000 steps.
      epsilon: added to the mean square, in the root.
      use_locking: whether updates of variables with dense gradients lock them.
      centered: whether the square of the mean is subtracted from the mean square.
      name: of slots and ops.

    Raises:
      ValueError: if `decay` or `momentum` is no number, or the momentum does not fade.
    """

    def __init__(  # noqa: PLR0917 - in the order of TensorFlow's
        self,
        learning_rate: Any,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(learning_rate, decay, momentum, epsilon, use_locking, centered, name)
        self._slots_of_rows = ("rms", "mg", "momentum") if centered else ("rms", "momentum")
        self._means_fade_by = float(np.float32(number("decay", decay)))
        self._check_momentum()

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        del variable
        return history.add_step(tf.constant(self._fading.terms[1:]))

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        *means, moving = slots
        [missed] = rest.numbers
        rested = [faded(each, self._means_fade_by, rest) for each in means]
        return value - moving * missed, [*rested, faded(moving, self._fades_by, rest)]

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        del variable
        rate, decay, momentum, epsilon = (
            tf.cast(each, value.dtype)
            for each in (
                self._learning_rate_tensor,
                self._decay_tensor,
                self._momentum_tensor,
                self._epsilon_tensor,
            )
        )
        square, *mean, moving = slots
        square += (tf.square(gradient) - square) * (1 - decay)
        mean = [each + (gradient - each) * (1 - decay) for each in mean]
        variance = square - tf.square(mean[0]) if mean else square
        moving = moving * momentum + rate * gradient / tf.sqrt(variance + epsilon)
        return value - moving, [square, *mean, moving]
