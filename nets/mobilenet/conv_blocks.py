"""Blocks that MobileNets are made of.

MobileNets, Howard et al. 2017, https://arxiv.org/abs/1704.04861; Searching for MobileNetV3, Howard
et al. 2019, https://arxiv.org/abs/1905.02244.  Feature maps are `[batch, height, width, channels]`.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.inverted_residual import expand_input_by_factor, expanded_conv
from nets.mobilenet.padding import padded
from nets.mobilenet.splitting import fused_conv, split_conv
from nets.parts.depth import make_divisible

__all__ = [
    "expand_input_by_factor",
    "expanded_conv",
    "fused_conv",
    "split_conv",
    "split_separable_conv2d",
    "squeeze_excite",
]


@slim.add_arg_scope
def split_separable_conv2d(
    input_tensor: Any,
    num_outputs: int,
    scope: str | None = None,
    normalizer_fn: Callable[..., Any] | None = None,
    stride: int = 1,
    rate: int = 1,
    endpoints: dict[str, Any] | None = None,
    use_explicit_padding: bool = False,
) -> Any:
    """Builds a layer of MobileNet v1: a depthwise 3x3 convolution, then a 1x1 one.

    Unlike in `slim.separable_conv2d`, each of the two is normalized and activated.

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      num_outputs: channels of the output.
      scope: the scopes are `<scope>_depthwise` and `<scope>_pointwise`, as in checkpoints of
        MobileNet v1; None puts both into a new scope `separable`.
      normalizer_fn: follows each convolution.
      stride: of the depthwise convolution.
      rate: its dilation.
      endpoints: gets the output of each convolution under its scope.
      use_explicit_padding: pads by the kernel size alone, where SAME padding depends on the
        input size too.

    Returns:
      `[batch, height / stride, width / stride, num_outputs]`.
    """
    with _scope_of_two(scope) as prefix:
        net, padding = padded(input_tensor, [3, 3], rate, use_explicit_padding)
        depthwise = slim.separable_conv2d(
            net,
            None,
            [3, 3],
            depth_multiplier=1,
            stride=stride,
            rate=rate,
            normalizer_fn=normalizer_fn,
            padding=padding,
            scope=f"{prefix}depthwise",
        )
        pointwise = slim.conv2d(
            depthwise, num_outputs, [1, 1], normalizer_fn=normalizer_fn, scope=f"{prefix}pointwise"
        )
    if endpoints is not None:
        endpoints.update({f"{prefix}depthwise": depthwise, f"{prefix}pointwise": pointwise})
    return pointwise


@contextlib.contextmanager
def _scope_of_two(scope: str | None) -> Iterator[str]:
    """Gives what the names of two layers begin with; without a name they get a new scope."""
    if scope is not None:
        yield f"{scope}_"
        return
    with (
        tf.variable_scope(None, "separable") as entered,
        tf.name_scope(entered.original_name_scope),
    ):
        yield ""


@slim.add_arg_scope
def squeeze_excite(
    input_tensor: Any,
    divisible_by: int = 8,
    squeeze_factor: float = 3,
    inner_activation_fn: Callable[..., Any] = tf.nn.relu,
    gating_fn: Callable[..., Any] = tf.sigmoid,
    squeeze_input_tensor: Any = None,
    pool: int | None = None,
) -> Any:
    """Scales each channel by a gate computed from the averages of all channels.

    Two 1x1 convolutions with fewer channels in between (section 5.3 of MobileNetV3).

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      divisible_by: the channels in between are a multiple of it.
      squeeze_factor: how many times fewer these are.
      inner_activation_fn: of the first convolution.
      gating_fn: of the second one: makes the gate.
      squeeze_input_tensor: `[batch, height, width, c]` that the gate is computed from, if not
        from the input.
      pool: averages over windows of this size side by side instead of the whole map, as far as it
        is that large; the gate is then resized to the map, bilinearly with aligned corners.

    Returns:
      `[batch, height, width, channels]`.
    """
    source = input_tensor if squeeze_input_tensor is None else squeeze_input_tensor
    squeezed = make_divisible(source.shape.as_list()[3] / squeeze_factor, divisible_by)
    with tf.variable_scope("squeeze_excite"), slim.arg_scope([slim.conv2d], normalizer_fn=None):
        pooled = _averages(source, pool)
        inner = slim.conv2d(pooled, squeezed, [1, 1], activation_fn=inner_activation_fn)
        channels = input_tensor.shape.as_list()[3]
        gate = slim.conv2d(inner, channels, [1, 1], activation_fn=gating_fn)
        if pool is not None:
            height_and_width = tf.shape(input_tensor)[1:3]
            gate = tf.image.resize_bilinear(gate, height_and_width, align_corners=True)
            gate.set_shape(input_tensor.shape)
        return input_tensor * gate


def _averages(net: Any, pool: int | None) -> Any:
    """Averages over the whole map, or over windows of `pool` (less where the map is smaller)."""
    if pool is None:
        return tf.reduce_mean(net, [1, 2], keepdims=True)
    height, width = (pool if side is None else min(side, pool) for side in net.shape.as_list()[1:3])
    return tf.nn.avg_pool2d(net, [1, height, width, 1], [1, pool, pool, 1], padding="VALID")
