"""Gradients of ops in 16 bits that are not TensorFlow's own; most are computed in float32.

TensorFlow's CPU kernel sums the gradient of a bias in bfloat16: over 6,272 numbers from 0 to 1 the
sum is 84% too small.  A matrix product sums in 32 bits and is as fast.  The filter gradient of a
convolution takes 700 times as long in float16; in bfloat16 that of three dimensions is wrong, even
infinite, where the images are 2 deep and have many channels.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.rewrites.precision.filter_gradients import as_products

_SETTINGS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def overrides(dtype: Any) -> dict[str, str]:
    """Returns names of gradient functions for `tf.Graph.gradient_override_map`, by type of op.

    Args:
      dtype: the dtype in which the ops compute, `tf.bfloat16` or `tf.float16`.
    """
    if dtype == tf.float16:
        return {**_REGISTERED, "BiasAdd": _OF_BIAS}
    of_three_dimensions = {kind: name for kind, name in _REGISTERED.items() if "3D" in kind}
    return {"Conv2D": _BY_PRODUCTS, **of_three_dimensions, "BiasAdd": _OF_BIAS}


def _settings(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in _SETTINGS if name in op.node_def.attr}


# Type of convolution -> the ops that compute the gradients of its images and of its filters.
_GRADIENT_OPS = {
    "Conv2D": (tf.raw_ops.Conv2DBackpropInput, tf.raw_ops.Conv2DBackpropFilter),
    "Conv3D": (tf.raw_ops.Conv3DBackpropInputV2, tf.raw_ops.Conv3DBackpropFilterV2),
}
# Type of transposed convolution -> the op, and its type, whose image gradient it computes.
_TRANSPOSED = {
    "Conv2DBackpropInput": (tf.raw_ops.Conv2D, "Conv2D"),
    "Conv3DBackpropInputV2": (tf.raw_ops.Conv3D, "Conv3D"),
}


def _of_images(op: Any, images: Any, filters: Any, gradient: Any) -> Any:
    compute, _ = _GRADIENT_OPS[op.type]
    sizes = tf.shape(images)
    return compute(input_sizes=sizes, filter=filters, out_backprop=gradient, **_settings(op))


def _of_filters(op: Any, kind: str, images: Any, filters: Any, gradient: Any) -> Any:
    _, compute = _GRADIENT_OPS[kind]
    sizes = tf.shape(filters)
    return compute(input=images, filter_sizes=sizes, out_backprop=gradient, **_settings(op))


def _convolution(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_filters = _of_filters(op, op.type, images, filters, gradient)
    return _of_images(op, images, filters, gradient), of_filters


def _transposed(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    forward, kind = _TRANSPOSED[op.type]
    of_filters = _of_filters(op, kind, gradient, filters, images)
    return forward(input=gradient, filter=filters, **_settings(op)), of_filters


# Type of op -> function that computes its gradients, places of images and filters in its inputs.
_GRADIENTS: dict[str, tuple[Callable[..., tuple[Any, Any]], int, int]] = {
    "Conv2D": (_convolution, 0, 1),
    "Conv3D": (_convolution, 0, 1),
    "Conv2DBackpropInput": (_transposed, 2, 1),
    "Conv3DBackpropInputV2": (_transposed, 2, 1),
}


def _register(kind: str) -> str:
    """Registers the gradient function of a type of op; returns its name."""
    compute, images_at, filters_at = _GRADIENTS[kind]

    def gradient_of(op: Any, gradient: Any) -> list[Any]:
        tensors = [op.inputs[images_at], op.inputs[filters_at], gradient]
        if "GPU" not in op.device.upper():
            tensors = [tf.cast(tensor, tf.float32) for tensor in tensors]
        found: list[Any] = [None] * len(op.inputs)
        for place, value in zip((images_at, filters_at), compute(op, *tensors), strict=True):
            found[place] = tf.cast(value, op.inputs[place].dtype)
        return found

    name = f"model_deploy/{kind}In16Bits"
    tf.RegisterGradient(name)(gradient_of)
    return name


_REGISTERED = {kind: _register(kind) for kind in _GRADIENTS}
_BY_PRODUCTS = "model_deploy/Conv2DInBfloat16"
_OF_BIAS = "model_deploy/BiasAddIn16Bits"


@tf.RegisterGradient(_BY_PRODUCTS)
def _gradient_by_products(op: Any, gradient: Any) -> list[Any]:
    """Gradient of a convolution; on a CPU the filter's by matrix products, if faster."""
    images, filters = op.inputs
    of_filters = None
    if "GPU" not in op.device.upper():
        of_filters = as_products(op, images, filters, gradient)
    if of_filters is None:
        of_filters = _of_filters(op, op.type, images, filters, gradient)
    return [_of_images(op, images, filters, gradient), of_filters]


@tf.RegisterGradient(_OF_BIAS)
def _gradient_of_bias(op: Any, gradient: Any) -> list[Any]:
    """Gradient of `BiasAdd`; on a CPU by a product with ones, which sums in 32 bits."""
    data_format = op.get_attr("data_format")
    if "GPU" in op.device.upper():
        return [gradient, tf.raw_ops.BiasAddGrad(out_backprop=gradient, data_format=data_format)]
    if gradient.dtype == tf.bfloat16 and data_format == b"NHWC":
        rows = tf.reshape(gradient, [-1, tf.size(op.inputs[1])])
        ones = tf.ones([1, tf.shape(rows)[0]], gradient.dtype)
        return [gradient, tf.squeeze(tf.matmul(ones, rows), axis=0)]
    in_32_bits = tf.cast(gradient, tf.float32)
    added = tf.raw_ops.BiasAddGrad(out_backprop=in_32_bits, data_format=data_format)
    return [gradient, tf.cast(added, gradient.dtype)]
