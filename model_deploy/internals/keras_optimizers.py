"""What Keras' optimizers keep to themselves; seen in Keras 3.15 and tf-keras 2.21."""

from typing import Any


def uses_weight_decay(optimizer: Any, variable: Any) -> bool:
    """Whether a Keras optimizer decays a Keras variable, of any shape.

    Wraps `KerasOptimizer._use_weight_decay`, of Keras 3 and tf-keras.
    """
    return bool(optimizer._use_weight_decay(variable))
