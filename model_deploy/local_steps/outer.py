"""`Outer`: the optimizer of the outer step, whose gradients are means of changes by replicas.

DiLoCo (Douillard et al. 2023, arXiv 2311.08105), algorithm 1: the outer gradient is the mean over
replicas of the *anchor*, the value after the last outer step, less the replica's own value.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import internals


class Outer:
    """The anchors of some variables, and SGD with Nesterov momentum that changes them.

    For variables that are not trained, such as the averages of batch norms, it is the mean alone.

    Args:
      variables: variables of floats, of any shapes.
      learning_rate: factor of the mean change.
      momentum: of Nesterov; 0 for none.
      device: device, or device function, of the anchors.

    Attributes:
      variables: as given.
      anchors: a variable of the same shape for each.
      momenta: the same, or None for a variable without momentum.
    """

    def __init__(
        self, variables: Sequence[Any], learning_rate: float, momentum: float, device: Any
    ) -> None:
        self.variables = list(variables)
        self._learning_rate, self._momentum = learning_rate, momentum
        with tf.init_scope(), tf.device(None), tf.device(device), tf.name_scope(None):
            self.anchors = [_zeros_like(v, "anchor") for v in variables]
            self.momenta = [
                _zeros_like(v, "momentum") if momentum and v.trainable else None for v in variables
            ]

    def changes(self) -> list[Any]:
        """Returns the anchors less the variables as they are now, of their shapes."""
        return [
            anchor.read_value() - variable.read_value()
            for anchor, variable in zip(self.anchors, self.variables, strict=True)
        ]

    def step(self, means: Sequence[Any]) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Computes an outer step, m = b m + g and a = a - r (g + b m), without making it.

        Args:
          means: the mean change g of each variable, of its shape.

        Returns:
          The new anchors, and `(variable, value)` pairs to assign to anchors and momenta.
        """
        new, assignments = [], []
        columns = zip(self.variables, self.anchors, self.momenta, means, strict=True)
        for variable, anchor, momentum, mean in columns:
            change = mean
            if momentum is not None:
                moved = self._momentum * momentum.read_value() + mean
                change = mean + self._momentum * moved
                assignments.append((momentum, moved))
            if variable.trainable and self._learning_rate != 1:
                change = self._learning_rate * change
            new.append(anchor.read_value() - change)
            assignments.append((anchor, new[-1]))
        return new, assignments


def _zeros_like(variable: Any, kind: str) -> Any:
    return tf.Variable(
        lambda: tf.zeros(variable.shape, variable.dtype.base_dtype),
        name=f"local_steps/{kind}/{variable.op.name}",
        trainable=False,
        use_resource=internals.is_resource_variable(variable),
    )
