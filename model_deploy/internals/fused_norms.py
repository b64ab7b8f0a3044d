"""Batch norms of Keras 3 by TensorFlow's fused op; seen in Keras 3.0 and 3.15."""

import contextlib
import contextvars
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.internals import batch_moments
from model_deploy.internals.replacing import Replace, Replacements

_LEAST_EPSILON = 1.001e-5  # with less the op takes this, which cuDNN needs

_fuses = contextvars.ContextVar("batch norms are fused", default=False)


@contextlib.contextmanager
def fusing_batch_norms(fuses: bool = True) -> Iterator[None]:
    """Makes layers of Keras 3 normalize batches by the fused op, in a `with` block.

    The results are the same, up to rounding, with fewer passes over the images.  Fused are layers
    on images [n, h, w, channels] in training, without a mask, renormalization or synchronization,
    with an epsilon that the op accepts.  Other layers, and other threads, are not affected.

    Wraps `BatchNormalization.call` of Keras 3.

    Args:
      fuses: False to turn fusing off in an inner block.
    """
    with _replacements.in_place(_fuses, fuses):
        yield


def _replace_all(replace: Replace) -> None:
    keras = sys.modules.get("keras")
    if keras is not None:  # else it has no layers to replace
        replace(keras.layers.BatchNormalization, "call", _call)


_replacements = Replacements(_replace_all)


def _call(original: Any) -> Any:
    """Returns a `BatchNormalization.call` that uses TensorFlow's fused op where possible."""

    def call(self: Any, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        if not (training and mask is None and _can_be_fused(self, inputs)):
            return original(self, inputs, training=training, mask=mask)
        values = tf.cast(inputs, tf.float32)
        channels = int(values.shape[-1])
        outputs, mean, variance = tf.nn.fused_batch_norm(
            values,
            _float(self.gamma) if self.scale else tf.ones([channels]),
            _float(self.beta) if self.center else tf.zeros([channels]),
            epsilon=self.epsilon,
        )
        # Keras' variance divides by n; the op's is an unbiased estimate, n / (n - 1) times as
        # large.
        count = tf.cast(tf.size(values) // channels, tf.float32)
        variance *= (count - 1) / count
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            average.assign(_float(average) * self.momentum + value * (1 - self.momentum))
        return tf.cast(outputs, self.compute_dtype)

    return call


def _float(variable: Any) -> Any:
    return tf.cast(tf.convert_to_tensor(variable), tf.float32)


def _can_be_fused(layer: Any, inputs: Any) -> bool:
    return (
        _fuses.get()
        and not batch_moments.are_taken()
        and isinstance(inputs, tf.Tensor)
        and inputs.shape.rank == 4
        and inputs.shape[-1] is not None
        and layer.axis in (-1, 3)
        and inputs.dtype in (tf.float32, tf.float16, tf.bfloat16)
        and layer.trainable
        and layer.epsilon >= _LEAST_EPSILON
        and not getattr(layer, "renorm", False)
        and not getattr(layer, "synchronized", False)
    )
