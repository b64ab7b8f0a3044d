"""Layers as values, so that a block of parallel branches reads like the figure in its paper.

A layer is a function of a feature map. `conv`, `max_pool` and `avg_pool` make one, `chain`,
`concat` and `branches` combine them. The scope of a convolution is derived from its place and
kernel, such as `Conv2d_0b_1x7`, as published Slim checkpoints have it.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim

Layer = Callable[[Any], Any]


def conv(place: str, height: int, width: int, filters: int, **keywords: Any) -> Layer:
    """Returns a convolution in the scope `Conv2d_<place>_<height>x<width>`.

    Args:
      place: such as `0b`; empty leaves it, and the underscore, out of the scope.
      height: of the kernel.
      width: of the kernel.
      filters: number of output channels.
      **keywords: more arguments of `slim.conv2d`.
    """
    scope = "_".join(["Conv2d", *filter(None, [place]), f"{height}x{width}"])

    def layer(net: Any) -> Any:
        return slim.conv2d(net, filters, [height, width], scope=scope, **keywords)

    return layer


def max_pool(stride: int, padding: str = "VALID") -> Layer:
    """Returns a 3x3 max pool."""

    def layer(net: Any) -> Any:
        return slim.max_pool2d(net, [3, 3], stride=stride, padding=padding, scope="MaxPool_3x3")

    return layer


def avg_pool() -> Layer:
    """Returns a 3x3 average pool that keeps the size; padded cells do not count."""

    def layer(net: Any) -> Any:
        return slim.avg_pool2d(net, [3, 3], stride=1, padding="SAME", scope="AvgPool_3x3")

    return layer


def chain(*layers: Layer) -> Layer:
    """Returns the layers, one after the other."""

    def layer(net: Any) -> Any:
        for each in layers:
            net = each(net)
        return net

    return layer


def concat(*layers: Layer) -> Layer:
    """Returns the layers side by side on one input, their channels one after the other."""

    def layer(net: Any) -> Any:
        return tf.concat([each(net) for each in layers], axis=3)

    return layer


def branches(*layers: Layer) -> Layer:
    """Returns `concat` of the layers, each in its scope: `Branch_0`, `Branch_1`, ..."""
    return concat(*(in_scope(f"Branch_{index}", layer) for index, layer in enumerate(layers)))


def in_scope(scope: str, layer: Layer) -> Layer:
    """Returns the layer with its variables under `scope`."""

    def scoped(net: Any) -> Any:
        with tf.variable_scope(scope):
            return layer(net)

    return scoped
