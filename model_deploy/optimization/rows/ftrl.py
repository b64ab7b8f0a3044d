"""`RowFtrlOptimizer`: FTRL at the cost of the rows of a step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy.optimization.rows.history import History
from model_deploy.optimization.rows.row_optimizer import Rest, RowOptimizer, number

_NODES = 8
# How much of a row a step may take at most.  Up to there a polynomial through `_NODES` values is
# right to 1e-6: the logarithm has its pole at twice the largest argument, see `_Shrinking`.
_MOST = 0.5


class RowFtrlOptimizer(RowOptimizer, tf.train.FtrlOptimizer):
    """FTRL-Proximal, whose steps cost the rows that they touch: the table of a dense gradient.

    It equals `tf.train.FtrlOptimizer` with dense gradients (McMahan et al. 2013,
    https://doi.org/10.1145/2487575.2488200); with sparse ones that optimizer leaves all rows but
    those of the step as they are.  There a row without gradient has the value

        w = -sign(z) * max(|z| - l1, 0) / ((accum ** -power + beta) / rate + 2 * l2)

    with the rate of the latest step, so that one that has never had a gradient is 0 after the first
    step.  With `l2_shrinkage_regularization_strength` each step adds `2 * shrinkage * w` to z,
    which takes the same share of `|z| - l1` in each step, at one rate; the logarithms of what is
    left are summed over the missed steps, as a polynomial in `1 / (accum ** -power + beta)`.

    Args:
      learning_rate: a number or a float scalar tensor.
      learning_rate_power: at most 0.
      initial_accumulator_value: at least 0; more than 0 with a shrinkage.
      l1_regularization_strength: at least 0.
      l2_regularization_strength: at least 0.
      use_locking: whether updates of variables with dense gradients lock them.
      name: of slots and ops.
      accum_name: suffix of the slot `accum`; by default the name.
      linear_name: suffix of the slot `linear`; by default the name.
      l2_shrinkage_regularization_strength: at least 0.
      beta: added to the root of the accumulator, a number.

    Raises:
      ValueError: if an argument is out of its range; if, at a learning rate that is a number, a
        step with a shrinkage may take more than half of a row.  For a tensor a session raises
        `InvalidArgumentError` in such a step.
    """

    _slots_of_rows = ("accum", "linear")

    def __init__(  # noqa: PLR0917 - in the order of TensorFlow's
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            learning_rate_power,
            initial_accumulator_value,
            l1_regularization_strength,
            l2_regularization_strength,
            use_locking,
            name,
            accum_name,
            linear_name,
            l2_shrinkage_regularization_strength,
            beta,
        )
        self._shrinks = 2 * number("l2_shrinkage", l2_shrinkage_regularization_strength)
        self._shrinking: _Shrinking | None = None
        if self._shrinks:
            least = initial_accumulator_value**-learning_rate_power + self._beta
            l2 = 2 * number("l2", l2_regularization_strength)
            self._shrinking = _Shrinking(least, self._shrinks, l2)
            if not tf.is_tensor(learning_rate):
                self._shrinking.check(learning_rate)

    def _prepare(self) -> None:
        super()._prepare()
        self._rate_t = self._learning_rate_tensor
        if self._shrinking is not None:
            with tf.control_dependencies([self._shrinking.checked(self._rate_t)]):
                self._rate_t = tf.identity(self._rate_t)

    def _fresh(self, variable: Any) -> Sequence[float]:
        del variable
        return [0.0] * (1 if self._shrinking is None else _NODES + 1)

    def _add_step(self, variable: Any, history: History) -> tf.Operation:
        del variable
        rate = tf.cast(self._rate_t, tf.float64)
        shrinking = self._shrinking

        def change(numbers: Any) -> Any:
            rates = tf.fill([numbers.shape[0], 1], rate)
            if shrinking is None:
                return rates
            # The rate before this one, where this is not the first step that a row misses.
            was_missed = tf.cast(numbers[:, -1:] > 0, tf.float64)
            polynomial = shrinking.polynomial(tf.reduce_max(numbers[:, -1]))
            return tf.concat([numbers[:, :-1] + was_missed * polynomial, rates], axis=1)

        return history.add_step(change=change)

    def _rested(self, value: Any, slots: Sequence[Any], rest: Rest) -> tuple[Any, list[Any]]:
        accumulated, linear = slots
        *sums, rate = rest.numbers
        has_missed = rate > 0
        root = self._root(accumulated)
        divisor = self._divisor(root, tf.where(has_missed, rate, tf.ones_like(rate)))
        # The first missed step takes its share of a value that may never have had a step.
        new_linear = linear + self._shrinks * value if self._shrinks else linear
        left = tf.nn.relu(tf.abs(new_linear) - self._l1_regularization_strength)
        if self._shrinking is not None:
            kept = left * tf.exp(self._shrinking.value(sums, root + self._beta))
            new_linear += tf.sign(new_linear) * (kept - left)
            left = kept
        new_value = -tf.sign(new_linear) * left / divisor
        missed = tf.logical_and(has_missed, tf.ones_like(value, tf.bool))
        return (
            tf.where(missed, new_value, value),
            [accumulated, tf.where(missed, new_linear, linear)],
        )

    def _stepped(
        self, variable: Any, value: Any, slots: Sequence[Any], gradient: Any
    ) -> tuple[Any, Sequence[Any]]:
        del variable
        accumulated, linear = slots
        rate = tf.cast(self._rate_t, value.dtype)
        new_accumulated = accumulated + tf.square(gradient)
        root, new_root = self._root(accumulated), self._root(new_accumulated)
        linear += gradient + self._shrinks * value - (new_root - root) / rate * value
        left = tf.nn.relu(tf.abs(linear) - self._l1_regularization_strength)
        return -tf.sign(linear) * left / self._divisor(new_root, rate), [new_accumulated, linear]

    def _root(self, accumulated: Any) -> Any:
        if self._learning_rate_power == -0.5:
            return tf.sqrt(accumulated)
        return tf.pow(accumulated, tf.cast(-self._learning_rate_power, accumulated.dtype))

    def _divisor(self, root: Any, rate: Any) -> Any:
        return (root + self._beta) / rate + 2 * self._l2_regularization_strength


class _Shrinking:
    """The logarithm of what a step leaves: `log(1 - shrinks * rate * x / (1 + l2 * rate * x))`.

    `x = 1 / (accum ** -power + beta)` is at most `1 / least`, as accumulators only grow.

    Args:
      least: the smallest `accum ** -power + beta`.
      shrinks: twice the shrinkage.
      l2: twice the L2 regularization.

    Raises:
      ValueError: if `least` is 0.
    """

    def __init__(self, least: float, shrinks: float, l2: float) -> None:
        if not least > 0:
            raise ValueError(
                "initial_accumulator_value or beta must be more than 0 with a shrinkage, got "
                f"{least:g}"
            )
        self._least, self._shrinks, self._l2 = least, shrinks, l2
        # Chebyshev's nodes in (0, 1), of x * least.
        angles = (2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES)
        self._nodes = (1 + np.cos(angles)) / 2
        # From values divided by their node to the coefficients of a polynomial.
        self._coefficients = np.linalg.inv(np.vander(self._nodes, increasing=True)) / self._nodes

    def check(self, rate: float) -> None:
        """Raises a `ValueError` if a step at a rate takes too much."""
        share = max(self._shrinks, self._l2) * rate / self._least
        if share > _MOST:
            raise ValueError(
                "learning_rate times the larger one of 2 * l2_shrinkage and 2 * l2 must be at most "
                f"{_MOST} of the root of the initial accumulator, plus beta; got {share:g} of it"
            )

    def checked(self, rate: Any) -> tf.Operation:
        """Returns an op that fails if a step at a rate, a scalar tensor, takes too much."""
        return tf.debugging.assert_less_equal(
            rate * (max(self._shrinks, self._l2) / self._least),
            tf.cast(_MOST, rate.dtype),
            message="learning_rate must be less, for RowFtrlOptimizer to shrink rows by it",
        )

    def polynomial(self, rate: Any) -> Any:
        """Returns the coefficients, float64 [_NODES], of the logarithm of a step at a rate."""
        x = rate * (self._nodes / self._least)
        logarithms = tf.math.log1p(-self._shrinks * x / (1 + self._l2 * x))
        return tf.linalg.matvec(self._coefficients, logarithms)

    def value(self, coefficients: Sequence[Any], divisor: Any) -> Any:
        """Returns the value of a polynomial, or of a sum of them, at `x = 1 / divisor`."""
        place = self._least / divisor
        found = coefficients[-1] * place
        for each in coefficients[-2::-1]:
            found = (found + each) * place
        return found
