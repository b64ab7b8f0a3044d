"""Moving averages of the variables: kept in training, restored in evaluation."""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim


def moving_average_update(decay: float, global_step: Any) -> Callable[[], Any]:
    """Returns an update op for `deploy(update_ops=...)` that averages the model's variables.

    After each step `average = d * average + (1 - d) * variable`, with
    `d = min(decay, (1 + step) / (10 + step))`.

    Args:
      decay: in (0, 1), close to 1.
      global_step: the variable that counts the steps done, an integer scalar.

    Returns:
      A function that makes the op; `deploy` calls it when the variables exist.
    """

    def update() -> Any:
        averages = tf.train.ExponentialMovingAverage(decay, global_step)
        by_device: dict[str, list[Any]] = {}
        for variable in _averaged_variables():
            by_device.setdefault(variable.device, []).append(variable)
        done = []
        for device, variables in by_device.items():
            # On the variables' devices: else variables and averages would be sent to the worker.
            with tf.device(device):
                done.append(averages.apply(variables))
        return tf.group(*done)

    return update


def averages_to_restore() -> dict[str, Any]:
    """Returns an evaluation graph's variables by the names of their averages in a checkpoint.

    Variables without an average, such as the global step, are under their own names.  An average
    has the shape and dtype of its variable.
    """
    averages = tf.train.ExponentialMovingAverage(0.0)  # the decay does not show in names
    averaged = _averaged_variables()
    names = {averages.average_name(variable): variable for variable in averaged}
    known = {variable.name for variable in averaged}
    others = {v.op.name: v for v in tf.global_variables() if v.name not in known}
    return {**names, **others}


def _averaged_variables() -> list[Any]:
    """Returns slim's model variables, with batch-norm statistics, or else trainable ones."""
    return slim.get_model_variables() or tf.trainable_variables()
