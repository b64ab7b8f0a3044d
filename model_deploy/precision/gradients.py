"""Gradients of ops in 16 bits that are computed otherwise than TensorFlow does, in 32 for the most.

TensorFlow's kernels for CPUs add up the gradient of a bias in bfloat16: that of 6,272 numbers from
0 to 1 comes out 84% too small.  The gradient of the input of a depthwise convolution takes 9 times
as long in bfloat16 as in float32; that of the filter of a convolution 700 times as long in float16.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy.precision.filter_gradients import as_products

_SETTINGS = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def overrides(dtype: Any) -> dict[str, str]:
    """Names of the gradients for `tf.Graph.gradient_override_map`, by type of op.

    Args:
      dtype: `tf.bfloat16` or `tf.float16`, what the ops compute in.
    """
    if dtype == tf.float16:
        return dict(_REGISTERED)
    names = {kind: _REGISTERED[kind] for kind in ("BiasAdd", "DepthwiseConv2dNative")}
    return {**names, "Conv2D": _BY_PRODUCTS}


def _settings(op: Any) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in _SETTINGS if name in op.node_def.attr}


def _depthwise(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_images = tf.raw_ops.DepthwiseConv2dNativeBackpropInput(
        input_sizes=tf.shape(images), filter=filters, out_backprop=gradient, **_settings(op)
    )
    of_filters = tf.raw_ops.DepthwiseConv2dNativeBackpropFilter(
        input=images, filter_sizes=tf.shape(filters), out_backprop=gradient, **_settings(op)
    )
    return of_images, of_filters


def _conv2d(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_images = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=tf.shape(images), filter=filters, out_backprop=gradient, **_settings(op)
    )
    of_filters = tf.raw_ops.Conv2DBackpropFilter(
        input=images, filter_sizes=tf.shape(filters), out_backprop=gradient, **_settings(op)
    )
    return of_images, of_filters


def _conv3d(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_images = tf.raw_ops.Conv3DBackpropInputV2(
        input_sizes=tf.shape(images), filter=filters, out_backprop=gradient, **_settings(op)
    )
    of_filters = tf.raw_ops.Conv3DBackpropFilterV2(
        input=images, filter_sizes=tf.shape(filters), out_backprop=gradient, **_settings(op)
    )
    return of_images, of_filters


def _bias(op: Any, values: Any, bias: Any, gradient: Any) -> tuple[Any, Any]:
    data_format = op.get_attr("data_format")
    return gradient, tf.raw_ops.BiasAddGrad(out_backprop=gradient, data_format=data_format)


def _transposed2d(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_filters = tf.raw_ops.Conv2DBackpropFilter(
        input=gradient, filter_sizes=tf.shape(filters), out_backprop=images, **_settings(op)
    )
    of_images = tf.raw_ops.Conv2D(input=gradient, filter=filters, **_settings(op))
    return of_images, of_filters


def _transposed3d(op: Any, images: Any, filters: Any, gradient: Any) -> tuple[Any, Any]:
    of_filters = tf.raw_ops.Conv3DBackpropFilterV2(
        input=gradient, filter_sizes=tf.shape(filters), out_backprop=images, **_settings(op)
    )
    of_images = tf.raw_ops.Conv3D(input=gradient, filter=filters, **_settings(op))
    return of_images, of_filters


# By type of op: its gradients, and the places of its images and its filters (or bias) among its
# inputs.
_GRADIENTS: dict[str, tuple[Callable[..., tuple[Any, Any]], int, int]] = {
    "BiasAdd": (_bias, 0, 1),
    "DepthwiseConv2dNative": (_depthwise, 0, 1),
    "Conv2D": (_conv2d, 0, 1),
    "Conv3D": (_conv3d, 0, 1),
    "Conv2DBackpropInput": (_transposed2d, 2, 1),
    "Conv3DBackpropInputV2": (_transposed3d, 2, 1),
}


def _register(kind: str) -> str:
    """Registers the gradient of a type of op; returns its name."""
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


@tf.RegisterGradient(_BY_PRODUCTS)
def _gradient_by_products(op: Any, gradient: Any) -> list[Any]:
    """That of a convolution; on a CPU the filter's by products, where these are faster."""
    images, filters = op.inputs
    of_filters = None
    if "GPU" not in op.device.upper():
        of_filters = as_products(op, images, filters, gradient)
    if of_filters is None:
        return list(_conv2d(op, images, filters, gradient))
    of_images = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=tf.shape(images), filter=filters, out_backprop=gradient, **_settings(op)
    )
    return [of_images, of_filters]
