"""LAMB: Adam whose step is scaled for each layer."""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.optimization.layerwise import (
    LayerPart,
    LayerwiseOptimizer,
    beside,
    norm,
    ratio_or_one,
)
from model_deploy.optimization.weight_decay import NO_WEIGHT_DECAY


class LAMBOptimizer(LayerwiseOptimizer):
    """LAMB (You et al., https://arxiv.org/abs/1904.00962, algorithm 2).

    With gradient `g`, moments `m` and `v` that start at 0, step `t` from 1, and rate `a`, for each
    layer, which is a variable:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g ** 2
        u = m / (1 - beta1 ** t) / (sqrt(v / (1 - beta2 ** t)) + epsilon) + weight_decay * w
        w = w - a * |w| / |u| * u

    The paper's function phi of the norm is the identity.  Where `|w|` or `|u|` is 0, the ratio is
    1.  The decay is part of `u`, so it is multiplied by the learning rate and the ratio; Keras'
    `Lamb` decays separately, as AdamW.  Variables that match `no_weight_decay` have neither decay
    nor ratio, as in the authors' program.

    For partitioned variables and sparse gradients see `LayerwiseOptimizer`.

    Args:
      learning_rate: a number, a float scalar tensor, or a function that returns one.
      weight_decay: weight of the variable in its step.
      beta1: decay of the first moment.
      beta2: decay of the second moment.
      epsilon: added to the divisor.
      no_weight_decay: regular expression, searched in the names of variables; '' matches none.
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
        epsilon: float = 1e-6,
        *,
        no_weight_decay: str = NO_WEIGHT_DECAY,
        use_locking: bool = False,
        name: str = "LAMB",
    ) -> None:
        super().__init__(learning_rate, weight_decay, no_weight_decay, use_locking, name)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # Beside the first variable by name, so that all workers find them on the same server.
        first = min(var_list, key=lambda variable: str(variable.name))
        for name, value in (("beta1_power", self._beta1), ("beta2_power", self._beta2)):
            self._create_non_slot_variable(initial_value=value, name=name, colocate_with=first)
        for variable in var_list:
            self._zeros_slot(variable, "m", self.get_name())
            self._zeros_slot(variable, "v", self.get_name())

    def _powers(self) -> list[Any]:
        """Returns the variables `beta1 ** t` and `beta2 ** t`."""
        graph = tf.get_default_graph()
        names = ("beta1_power", "beta2_power")
        return [self._get_non_slot_variable(name, graph=graph) for name in names]

    def _layer_ops(self, parts: Sequence[LayerPart], is_scaled: bool) -> list[Any]:
        stepped = [self._moments(part) for part in parts]
        steps = [step for step, _ in stepped]
        if is_scaled:
            steps = [
                step + self._weight_decay * part.value
                for step, part in zip(steps, parts, strict=True)
            ]
            length = norm([part.value for part in parts], parts)
            step_length = norm(steps, parts)
            ratio = ratio_or_one(length, step_length, [length, step_length])
            steps = [tf.cast(ratio, step.dtype) * step for step in steps]
        ops = []
        for part, step, (_, moved) in zip(parts, steps, stepped, strict=True):
            with beside(part.variable):
                ops.append(
                    tf.group(*moved, self._subtracted(part.variable, self._rate_for(step) * step))
                )
        return ops

    def _moments(self, part: LayerPart) -> tuple[Any, list[Any]]:
        """Returns Adam's step of the part at rate 1, and the ops that update its moments."""
        with beside(part.variable), tf.control_dependencies([part.gradient]):
            dtype, moved, corrected = part.gradient.dtype, [], []
            values = (part.gradient, tf.square(part.gradient))
            betas = (self._beta1, self._beta2)
            for name, beta, power, value in zip("mv", betas, self._powers(), values, strict=True):
                slot = self.get_slot(part.variable, name)
                new = beta * slot.read_value() + (1 - beta) * value
                moved.append(self._assigned(slot, new))
                corrected.append(new / (1 - tf.cast(power, dtype)))
            return corrected[0] / (tf.sqrt(corrected[1]) + self._epsilon), moved

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        """Updates the powers of beta once all variables are updated."""
        moved = []
        with tf.control_dependencies(update_ops):
            for beta, power in zip((self._beta1, self._beta2), self._powers(), strict=True):
                with beside(power):
                    moved.append(self._assigned(power, beta * power.read_value()))
        return tf.group(*update_ops, *moved, name=name_scope)
