"""A network of equal layers whose computation takes a given time, and no core.

So that many workers fit on few cores, a layer sleeps for as long as it would compute.  It begins
when its variable is there and the layer before is done; its gradient comes when those of all
layers behind it have come.  As in real networks, the backward pass takes twice as long as the
forward pass.
"""

import time
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
FORWARD_SHARE = 1 / 3


class Computation:
    """How long the computation of a step takes; it may be changed between steps.

    Args:
      layers: among which the time is divided.

    Attributes:
      secs: of a step, in all layers together.
    """

    def __init__(self, layers: int) -> None:
        self._layers = layers
        self.secs = 0.0

    def chain(self, values: list[Any]) -> Any:
        """The loss of the layers, a float32 scalar; the gradients of the values are ones.

        Args:
          values: one of each layer, vectors of float32.
        """
        signal = tf.constant(1.0)
        for value in values:
            signal = self._layer(signal, value)
        return signal

    def _layer(self, signal: Any, value: Any) -> Any:
        @tf.custom_gradient  # type: ignore[untyped-decorator]
        def layer(signal: Any, value: Any) -> Any:
            passed = self._pause([signal, value[:1]], FORWARD_SHARE)

            def gradient(upstream: Any) -> tuple[Any, Any]:
                with tf.control_dependencies([passed]):  # it needs what the forward pass made
                    back = self._pause([upstream], 1 - FORWARD_SHARE)
                return back, tf.fill(value.shape, back)

            return passed, gradient

        return layer(signal, value)

    def _pause(self, inputs: list[Any], share: float) -> Any:
        """The first of the inputs, after a pause that begins when all are there."""

        def pause(signal: np.ndarray, *_: np.ndarray) -> np.ndarray:
            if self.secs:
                time.sleep(self.secs * share / self._layers)
            return signal

        paused = tf.numpy_function(pause, inputs, tf.float32)
        paused.set_shape([])
        return paused
