"""Builds the layers that MobileNets are made of, from their definitions.

MobileNetV2: Inverted Residuals and Linear Bottlenecks, Sandler et al. 2018,
https://arxiv.org/abs/1801.04381.  Feature maps are `[batch, height, width, channels]`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.definitions import Conv, ExpandedConv, Layer


class Place(NamedTuple):
    """How a layer is built where it stands.

    Attributes:
      scope: variable scope.
      stride: of the layer; 1 where it became dilation.
      rate: dilation that makes up for strides left out before.
      explicit_padding: pads by the kernel size alone, where SAME padding depends on
        the input size too.
    """

    scope: str
    stride: int = 1
    rate: int = 1
    explicit_padding: bool = False


def fixed_padding(inputs: Any, kernel_size: Sequence[int], rate: int = 1) -> Any:
    """Pads height and width with zeros by what the kernel alone asks for.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      kernel_size: height and width of the VALID convolution that follows.
      rate: its dilation.

    Returns:
      `[batch, height + p, width + p, channels]`, p = (kernel size - 1) * rate.
    """
    totals = [(size - 1) * rate for size in kernel_size]
    height, width = ([total // 2, total - total // 2] for total in totals)
    return tf.pad(inputs, [[0, 0], height, width, [0, 0]])


def pool_to_pixel(net: Any, use_reduce_mean: bool = False) -> Any:
    """Averages `[batch, height, width, channels]` to `[batch, 1, 1, channels]`.

    Args:
      net: float32 feature maps.
      use_reduce_mean: a `reduce_mean` instead of an average pooling op; a map of
        unknown height or width always takes it.
    """
    height, width = net.shape.as_list()[1:3]
    if use_reduce_mean or height is None or width is None:
        return tf.reduce_mean(net, [1, 2], keepdims=True, name="ReduceMean")
    return slim.avg_pool2d(net, [height, width], stride=1, scope="AvgPool")


def build_layer(net: Any, layer: Layer, place: Place) -> tuple[Any, dict[str, Any]]:
    """Builds one layer.

    Args:
      net: `[batch, height, width, channels]` float32.
      layer: what to build.
      place: how.

    Returns:
      `[batch, height / stride, width / stride, num_outputs]`, and the end points inside
      of the layer by name.
    """
    if isinstance(layer, Conv):
        return _conv(net, layer, place), {}
    if isinstance(layer, ExpandedConv):
        return _expanded_conv(net, layer, place)
    with tf.name_scope(place.scope):
        return pool_to_pixel(net), {}


def _conv(net: Any, layer: Conv, place: Place) -> Any:
    keywords = {**_activation(layer), "scope": place.scope}
    if not layer.normalized:
        keywords["normalizer_fn"] = None
    return _spatial_conv(slim.conv2d, net, layer.num_outputs, layer, place, keywords)


def _expanded_conv(inputs: Any, layer: ExpandedConv, place: Place) -> tuple[Any, dict[str, Any]]:
    end_points = {}
    net = inputs
    with tf.variable_scope(place.scope):
        expanded = _expand(net, layer, place)
        if expanded is not None:
            net = end_points["expansion_output"] = tf.identity(expanded, "expansion_output")
        if not layer.fused:
            keywords = {**_activation(layer), "scope": "depthwise"}
            net = _spatial_conv(slim.separable_conv2d, net, None, layer, place, keywords)
            net = end_points["depthwise_output"] = tf.identity(net, "depthwise_output")
        if layer.transform is not None:
            net = layer.transform(net)
        net = slim.conv2d(net, layer.num_outputs, [1, 1], activation_fn=None, scope="project")
        if layer.residual and place.stride == 1 and inputs.shape.as_list()[3] == layer.num_outputs:
            net += inputs
        net = end_points["output"] = tf.identity(net, "output")
    return net, end_points


def _expand(net: Any, layer: ExpandedConv, place: Place) -> Any:
    """Returns the widened input of a block, or None where it stays as wide as it is."""
    inner_size = layer.inner_size(net.shape.as_list()[3])
    if inner_size == net.shape.as_list()[3]:
        return None
    keywords = {**_activation(layer), "scope": "expand"}
    if layer.fused:
        return _spatial_conv(slim.conv2d, net, inner_size, layer, place, keywords)
    return slim.conv2d(net, inner_size, [1, 1], **keywords)


def _activation(layer: Conv | ExpandedConv) -> dict[str, Any]:
    """Returns the activation as a keyword, none if it is left to the network."""
    return {} if layer.activation_fn is None else {"activation_fn": layer.activation_fn}


def _spatial_conv(
    function: Callable[..., Any],
    net: Any,
    num_outputs: int | None,
    layer: Conv | ExpandedConv,
    place: Place,
    keywords: dict[str, Any],
) -> Any:
    """Applies a full or depthwise convolution of the layer's kernel size and stride."""
    kernel_size = [layer.kernel_size, layer.kernel_size]
    rate = 1 if layer.kernel_size == 1 else place.rate
    if place.explicit_padding:
        net = fixed_padding(net, kernel_size, rate)
    return function(
        net,
        num_outputs,
        kernel_size,
        stride=place.stride,
        rate=rate,
        padding="VALID" if place.explicit_padding else "SAME",
        **keywords,
    )
