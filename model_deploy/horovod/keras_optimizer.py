"""Optimizers of Keras that make their updates from the gradients of all processes."""

import sys
from typing import Any

from model_deploy.horovod.exchange import Exchange


def is_of_tf_keras(optimizer: Any) -> bool:
    """Whether `fit` of tf-keras in graph mode takes an optimizer: one of its `legacy` ones."""
    library = sys.modules.get("tf_keras")  # which whoever made such an optimizer has imported
    return library is not None and isinstance(optimizer, library.optimizers.legacy.Optimizer)


def distributed_keras_optimizer(optimizer: Any, exchange: Exchange, passes: int = 1) -> Any:
    """An optimizer like one of tf-keras, whose gradients are those of all processes.

    Args:
      optimizer: one of `tf_keras.optimizers.legacy`, those of `tf.keras` in TensorFlow 1.
      exchange: how gradients are exchanged.
      passes: 1; tf-keras makes an update of each batch.

    Raises:
      ValueError: for `passes`.
    """
    if passes != 1:
        raise ValueError(f"backward_passes_per_step must be 1 with tf-keras, got {passes}")
    return distributed_class(type(optimizer), exchange).from_config(optimizer.get_config())


def distributed_class(kind: type, exchange: Exchange) -> Any:
    """A class of optimizers like one of tf-keras, whose gradients are those of all processes."""

    class Distributed(kind):
        """The optimizer, with other gradients."""

        def get_gradients(self, loss: Any, params: Any) -> Any:
            """Gradients of all processes, of the shapes of the variables `params`."""
            gradients = super().get_gradients(loss, params)
            return [g for g, _ in exchange(list(zip(gradients, params, strict=True)))]

        def _compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
            return exchange(super()._compute_gradients(*args, **kwargs))

    Distributed.__name__ = kind.__name__  # by which Keras saves and loads it
    return Distributed
