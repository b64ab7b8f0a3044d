"""The convolutions inside of an inverted residual block, besides the depthwise one."""

import itertools
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.mobilenet.padding import padded


def split_conv(
    input_tensor: Any,
    num_outputs: int,
    num_ways: int,
    scope: str,
    divisible_by: int = 8,
    **kwargs: Any,
) -> Any:
    """Builds a 1x1 convolution in parts: each connects one part of the channels with another.

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      num_outputs: channels of the output.
      num_ways: number of parts, of about the same size.
      scope: variable scope; that of part i is `<scope>_part_<i>`.
      divisible_by: each part has a multiple of it as channels. It stays one convolution where
        a part would have fewer.
      **kwargs: go to `slim.conv2d`.

    Returns:
      `[batch, height, width, num_outputs]`.

    Raises:
      ValueError: if inputs or outputs that are split are no multiple of `divisible_by`.
    """
    num_inputs = input_tensor.shape.as_list()[3]
    if num_ways == 1 or min(num_inputs, num_outputs) // num_ways < divisible_by:
        return slim.conv2d(input_tensor, num_outputs, [1, 1], scope=scope, **kwargs)
    sizes = _shares(num_inputs, num_ways, divisible_by)
    parts = tf.split(input_tensor, sizes, axis=3, name=f"split_{scope}")
    outputs = []
    for index, size in enumerate(_shares(num_outputs, num_ways, divisible_by)):
        name = f"{scope}_part_{index}"
        part = slim.conv2d(parts[index], size, [1, 1], scope=name, **kwargs)
        outputs.append(tf.identity(part, f"{name}_output"))
    return tf.concat(outputs, 3, name=f"{scope}_concat")


def _shares(channels: int, num_ways: int, divisible_by: int) -> list[int]:
    """Splits channels evenly: each part ends where it should, or at the next multiple."""
    if channels % divisible_by:
        raise ValueError(
            f"channels to split must be a multiple of divisible_by ({divisible_by}), got {channels}"
        )
    steps = channels // divisible_by
    ends = [-(-steps * way // num_ways) * divisible_by for way in range(num_ways + 1)]
    return [end - start for start, end in itertools.pairwise(ends)]


def fused_conv(
    input_tensor: Any,
    num_outputs: int,
    scope: str,
    *,
    kernel_size: Sequence[int] = (3, 3),
    stride: int = 1,
    rate: int = 1,
    use_explicit_padding: bool = False,
    **kwargs: Any,
) -> Any:
    """Builds the expansion of a fused block: a full convolution that has the block's stride.

    As `expansion_fn` of `expanded_conv` it gets kernel size, stride, rate and padding of the block.

    Args:
      input_tensor: `[batch, height, width, channels]` float32.
      num_outputs: channels of the output.
      scope: variable scope.
      kernel_size: height and width of the kernel.
      stride: its stride.
      rate: its dilation.
      use_explicit_padding: pads by the kernel size alone.
      **kwargs: go to `slim.conv2d`.

    Returns:
      `[batch, height / stride, width / stride, num_outputs]`.
    """
    net, padding = padded(input_tensor, kernel_size, rate, use_explicit_padding)
    spatial = {"stride": stride, "rate": rate, "padding": padding}
    return slim.conv2d(net, num_outputs, kernel_size, scope=scope, **spatial, **kwargs)
