"""`RowAdamOptimizer` and `RowAdamWOptimizer`: Adam and AdamW at the cost of the rows of a step."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.optimization.adamw import AdamWOptimizer
from model_deploy.optimization.rows import fading
from model_deploy.optimization.rows.history import STEPS_KEPT, History
from model_deploy.optimization.rows.row_optimizer import Rest, RowOptimizer, faded, number
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY


class _RowAdam(RowOptimizer):
    """What Adam and AdamW by rows have in common: a mixin for `tf.train.AdamOptimizer`."""

    _slots_of_rows = ("m", "v")

    def _check_betas(self) -> None:
        # As TensorFlow's kernels have them: decays of float32 numbers.
        beta1, beta2 = number("beta1", self._beta1), number("beta2", self._beta2)
        self._betas = float(np.float32(beta1)), float(np.float32(beta2))
        self._fading = fading.of_adam(*self._betas, most_steps=STEPS_KEPT - 2)

    def _prepare(self) -> None:
        super()._prepare()
        power1, power2 = self._get_beta_accumulators()
        with tf.get_default_graph().colocate_with(power1.op, ignore_existing=True):
            rate = tf.cast(self._lr_t, power1.dtype.base_dtype)
            self._rate_t = rate * tf.sqrt(1 - power2) / (1 - power1)

    def _fresh(self, variable: Any) -> Sequence[float]:
        del variable
        return [0.0] * len(self._fading.shifts)

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        del variable
        return history.add_step(tf.cast(self._rate_t, tf.float64) * self._fading.terms[1:])

    def _missed(self, slots: Sequence[Any], numbers: Sequence[Any]) -> Any:
        """What rows have moved since their last step, but for the decay of weights."""
        first, second = slots
        root = tf.sqrt(second)
        # Not the tensor of the update, which may wait for the loss, which waits for these rows.
        epsilon = self._epsilon() if callable(self._epsilon) else self._epsilon
        epsilon = tf.cast(tf.convert_to_tensor(epsilon), root.dtype)
        return first * tf.add_n(
            [
                each / (root + epsilon * tf.cast(shift, root.dtype))
                for each, shift in zip(numbers, self._fading.shifts, strict=True)
            ]
        )

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        moments = [faded(each, beta, rest) for each, beta in zip(slots, self._betas, strict=True)]
        return value - self._missed(slots, rest.numbers), moments

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        del variable
        cast = functools.partial(tf.cast, dtype=value.dtype)
        first, second = slots
        first += (gradient - first) * (1 - cast(self._beta1_t))
        second += (tf.square(gradient) - second) * (1 - cast(self._beta2_t))
        step = cast(self._rate_t) * first / (tf.sqrt(second) + cast(self._epsilon_t))
        return value - step, [first, second]


class RowAdamOptimizer(_RowAdam, tf.train.AdamOptimizer):
    """Adam, whose steps cost the rows that they touch: the table is that of `AdamOptimizer`.

    `tf.train.AdamOptimizer` decays the moments of all rows in each step, and moves all rows by
    them, whether or not they have a gradient.  Here this is made up for when a row is next read or
    changed, see `RowOptimizer`: the moments of a row that has rested for k steps are
    `beta1 ** k * m` and `beta2 ** k * v`, and what it has moved is the sum of

        rate[i] * beta1 ** i * m / (beta2 ** (i / 2) * sqrt(v) + epsilon),   i = 1 ... k

    over the rates of these steps, with Adam's correction for the start of the moments
    (https://arxiv.org/abs/1412.6980, end of section 2).  The sum is taken by a polynomial in i, to
    1e-6 of itself or better.  `LazyAdamOptimizer` does not make up for anything: another algorithm.

    `current(table)` is the whole table, as `AdamOptimizer` would have it now.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      beta1: decay of the first moment, a number.
      beta2: decay of the second moment, a number.
      epsilon: added to the divisor.
      use_locking: whether updates of variables with dense gradients lock them.
      name: of slots and ops.

    Raises:
      ValueError: naming beta1 and beta2, if they are no numbers, or updates do not fade within
        4,000 steps, or the second moment fades too fast.
    """

    def __init__(  # noqa: PLR0917 - in the order of TensorFlow's
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)
        self._check_betas()


class RowAdamWOptimizer(_RowAdam, AdamWOptimizer):
    """AdamW, whose steps cost the rows that they touch: the table is that of `AdamWOptimizer`.

    As `RowAdamOptimizer`; a row that rests is multiplied by `1 - rate * weight_decay` in each step
    besides, before Adam's update of that step.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      weight_decay: fraction of a variable subtracted by a step at rate 1.
      beta1: decay of the first moment, a number.
      beta2: decay of the second moment, a number.
      epsilon: added to the divisor.
      no_weight_decay: regular expression for names of variables not to decay, see
        `AdamWOptimizer`.
      use_locking: whether updates of variables with dense gradients lock them.
      name: of slots and ops.

    Raises:
      ValueError: as `AdamWOptimizer` and `RowAdamOptimizer`.
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
        super().__init__(
            learning_rate,
            weight_decay,
            beta1,
            beta2,
            epsilon,
            no_weight_decay=no_weight_decay,
            use_locking=use_locking,
            name=name,
        )
        self._check_betas()

    def _fresh(self, variable: Any) -> Sequence[float]:
        return [*super()._fresh(variable), 1.0]

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        terms = tf.cast(self._rate_t, tf.float64) * np.pad(self._fading.terms[1:], ((0, 0), (0, 1)))
        if not self._decays(variable):
            return history.add_step(terms)
        kept = 1 - tf.cast(self._share, tf.float64)
        return history.add_step(terms, lambda numbers: numbers * kept)

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        *numbers, kept = rest.numbers
        return super()._rested(value * kept, slots, Rest(numbers, rest.steps))

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        if self._decays(variable):
            value -= tf.cast(self._share, value.dtype) * value
        return super()._stepped(variable, value, slots, gradient)
