"""LARS: momentum whose step is scaled for each layer."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.checks import check_at_least
from model_deploy.optimization.layerwise import (
    LayerPart,
    LayerwiseOptimizer,
    beside,
    norm,
    ratio_or_one,
)
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY


class LARSOptimizer(LayerwiseOptimizer):
    """LARS (You et al., https://arxiv.org/abs/1708.03888, equation 6 and algorithm 1).

    With gradient `g`, velocity `v` that starts at 0, and rate `a`, for each layer, which is a
    variable:

        r = coefficient * |w| / (|g| + weight_decay * |w|)
        v = momentum * v + a * r * (g + weight_decay * w)
        w = w - v

    Where `|w|` or `|g|` is 0, `r` is 1.  The learning rate is part of the velocity: a new rate
    affects future gradients only, unlike in `MomentumOptimizer`.  The decay is multiplied by `a *
    r`.  For variables that match `no_weight_decay`, `r` is 1 and there is no decay, as in the
    authors' program.

    For partitioned variables and sparse gradients see `LayerwiseOptimizer`.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      momentum: fraction of the velocity kept in a step.
      weight_decay: weight of the variable in its gradient.
      coefficient: length of a step at rate 1, relative to the variable's norm.
      no_weight_decay: regular expression, searched in the names of variables; '' matches none.
      use_locking: whether updates lock the variables.
      name: of slots and ops.

    Raises:
      ValueError: naming the argument, if `momentum`, `weight_decay` or `coefficient` is less than
        0, or `no_weight_decay` is no regular expression.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0005,
        coefficient: float = 0.001,
        *,
        no_weight_decay: str = NO_WEIGHT_DECAY,
        use_locking: bool = False,
        name: str = "LARS",
    ) -> None:
        check_at_least("momentum", momentum, 0)
        check_at_least("coefficient", coefficient, 0)
        super().__init__(learning_rate, weight_decay, no_weight_decay, use_locking, name)
        self._momentum, self._coefficient = momentum, coefficient

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self.get_name())

    def _layer_ops(self, parts: Sequence[LayerPart], is_scaled: bool) -> list[Any]:
        gradients = [part.gradient for part in parts]
        ratio: Any = tf.constant(1.0)
        if is_scaled:
            length = norm([part.value for part in parts], parts)
            slope = norm(gradients, parts)
            divisor = slope + self._weight_decay * length
            ratio = ratio_or_one(self._coefficient * length, divisor, [length, slope])
            gradients = [part.gradient + self._weight_decay * part.value for part in parts]
        ops = []
        for part, gradient in zip(parts, gradients, strict=True):
            with beside(part.variable), tf.control_dependencies([part.gradient]):
                slot = self.get_slot(part.variable, "momentum")
                rate = self._rate_for(gradient) * tf.cast(ratio, gradient.dtype)
                velocity = self._momentum * slot.read_value() + rate * gradient
                moved = self._assigned(slot, velocity)
                ops.append(tf.group(moved, self._subtracted(part.variable, velocity)))
        return ops
