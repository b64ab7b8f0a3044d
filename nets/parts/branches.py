"""Layers as values, so that a block of parallel branches reads like the figure in its paper.

A layer is a function of a feature map. `conv`, `max_pool` and `avg_pool` make one, `chain`,
`concat` and `branches` combine them, and `run_steps` applies them up to an end point. The scope of
a layer is derived from its place and kernel, such as `Conv2d_0b_1x7`, as published Slim checkpoints
have it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import check_choice

Layer = Callable[[Any], Any]


def conv(
    place: str, height: int, width: int, filters: int, scope: str | None = None, **keywords: Any
) -> Layer:
    """Returns a convolution in the scope `Conv2d_<place>_<height>x<width>`.

    Args:
      place: such as `0b`; empty leaves it, and the underscore, out of the scope.
      height: of the kernel.
      width: of the kernel.
      filters: number of output channels.
      scope: another scope, where checkpoints have one that does not follow the rule.
      **keywords: more arguments of `slim.conv2d`.
    """
    scope = scope or _scope("Conv2d", place, height, width)

    def layer(net: Any) -> Any:
        return slim.conv2d(net, filters, [height, width], scope=scope, **keywords)

    return layer


def max_pool(place: str, stride: int, padding: str = "VALID", side: int = 3) -> Layer:
    """Returns a max pool over `side` x `side` pixels, in a scope such as `MaxPool_1a_3x3`."""
    scope = _scope("MaxPool", place, side, side)

    def layer(net: Any) -> Any:
        return slim.max_pool2d(net, [side, side], stride=stride, padding=padding, scope=scope)

    return layer


def avg_pool(place: str = "0a") -> Layer:
    """Returns a 3x3 average pool that keeps the size; padded cells do not count."""
    scope = _scope("AvgPool", place, 3, 3)

    def layer(net: Any) -> Any:
        return slim.avg_pool2d(net, [3, 3], stride=1, padding="SAME", scope=scope)

    return layer


def chain(*layers: Layer) -> Layer:
    """Returns the layers, one after the other."""

    def layer(net: Any) -> Any:
        for each in layers:
            net = each(net)
        return net

    return layer


def concat(*layers: Layer, axis: int = 3) -> Layer:
    """Returns the layers side by side on one input, their channels one after the other.

    Args:
      *layers: of any number.
      axis: the one of the channels, 3 of `[batch, height, width, channels]`.
    """

    def layer(net: Any) -> Any:
        return tf.concat([each(net) for each in layers], axis=axis)

    return layer


def branches(*layers: Layer, axis: int = 3) -> Layer:
    """Returns `concat` of the layers, each in its scope: `Branch_0`, `Branch_1`, ..."""
    scoped = [in_scope(f"Branch_{index}", layer) for index, layer in enumerate(layers)]
    return concat(*scoped, axis=axis)


def in_scope(scope: str, layer: Layer) -> Layer:
    """Returns the layer with its variables under `scope`."""

    def scoped(net: Any) -> Any:
        with tf.variable_scope(scope):
            return layer(net)

    return scoped


def run_steps(
    net: Any, steps: Mapping[str, Layer], final_endpoint: str
) -> tuple[Any, dict[str, Any]]:
    """Applies the steps in order, up to and with the one called `final_endpoint`.

    Args:
      net: images `[batch, height, width, channels]`.
      steps: end point -> the layer that makes it from the end point before.
      final_endpoint: the last one to build.

    Returns:
      The last end point, and all of them by name.

    Raises:
      ValueError: if there is no step called `final_endpoint`.
    """
    check_choice("final_endpoint", final_endpoint, steps)
    end_points: dict[str, Any] = {}
    for name, layer in steps.items():
        net = end_points[name] = layer(net)
        if name == final_endpoint:
            break
    return net, end_points


def _scope(kind: str, place: str, height: int, width: int) -> str:
    return "_".join([kind, *filter(None, [place]), f"{height}x{width}"])
