"""Feature maps of either layout: their axes, a halving without loss, paths that are dropped.

After B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable Architectures for Scalable
Image Recognition" (2018), https://arxiv.org/abs/1707.07012. The functions take the layout, `NHWC`
or `NCHW`, from an arg scope that sets `data_format`.
"""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import check_choice

DATA_FORMAT_NCHW = "NCHW"
DATA_FORMAT_NHWC = "NHWC"
# The layout where no arg scope sets one; refused.
INVALID = "null"


@slim.add_arg_scope
def get_channel_index(data_format: str = INVALID) -> int:
    """Returns the axis of the channels: 3 of `NHWC`, 1 of `NCHW`.

    Raises:
      ValueError: if `data_format` is neither.
    """
    check_choice("data_format", data_format, [DATA_FORMAT_NCHW, DATA_FORMAT_NHWC])
    return 3 if data_format == DATA_FORMAT_NHWC else 1


@slim.add_arg_scope
def get_channel_dim(shape: Any, data_format: str = INVALID) -> int:
    """Returns the number of channels in the shape of a feature map.

    Raises:
      ValueError: if the shape has not four axes, or `data_format` is not one.
    """
    axis = get_channel_index(data_format=data_format)
    if len(shape) != 4:
        raise ValueError(f"shape must have 4 axes, got {shape}")
    return int(shape[axis])


def _spatial_axes(data_format: str) -> list[int]:
    """Returns the axes of height and width."""
    return [1, 2] if get_channel_index(data_format=data_format) == 3 else [2, 3]


def size_of(net: Any) -> list[int]:
    """Returns height and width, in the layout of the arg scope."""
    shape = net.shape.as_list()
    del shape[get_channel_index()], shape[0]
    return shape


@slim.add_arg_scope
def global_avg_pool(x: Any, data_format: str = INVALID) -> Any:
    """Averages a feature map over height and width: `[batch, channels]`.

    Raises:
      ValueError: if `x` has not rank 4, or `data_format` is not one.
    """
    axes = _spatial_axes(data_format)
    if x.shape.rank != 4:
        raise ValueError(f"x must have rank 4, got shape {x.shape}")
    return tf.reduce_mean(x, axes)


def normalized_conv(net: Any, filters: int, scope: str, norm_scope: str, stride: int = 1) -> Any:
    """Returns a normalized 1x1 convolution."""
    net = slim.conv2d(net, filters, [1, 1], stride=stride, scope=scope)
    return slim.batch_norm(net, scope=norm_scope)


@slim.add_arg_scope
def factorized_reduction(
    net: Any, output_filters: int, stride: int, data_format: str = INVALID
) -> Any:
    """Takes every `stride`-th pixel, on two paths of which the second is shifted by one pixel.

    With stride 2 the paths see a pixel of every row and of every column between them. An odd
    filter goes to the second path.

    Args:
      net: feature map.
      output_filters: number of output channels, at least 2.
      stride: 1 makes one normalized 1x1 convolution.
      data_format: layout of `net`.

    Returns:
      A map of height and width divided by `stride`, rounded up.

    Raises:
      ValueError: if `data_format` is not a layout.
    """
    if stride == 1:
        get_channel_index(data_format=data_format)
        return normalized_conv(net, output_filters, "path_conv", "path_bn")
    axes = _spatial_axes(data_format)
    shifted = tf.pad(net, [[0, int(axis in axes)] for axis in range(4)])
    filters = output_filters // 2
    paths = [
        slim.conv2d(_every(net, stride, 0, axes), filters, [1, 1], scope="path1_conv"),
        slim.conv2d(
            _every(shifted, stride, 1, axes), output_filters - filters, [1, 1], scope="path2_conv"
        ),
    ]
    joined = tf.concat(paths, axis=get_channel_index(data_format=data_format))
    return slim.batch_norm(joined, scope="final_path_bn")


def _every(net: Any, stride: int, first: int, axes: list[int]) -> Any:
    """Returns every `stride`-th pixel along these axes, from the first one."""
    pixels = slice(first, None, stride)
    return net[tuple(pixels if axis in axes else slice(None) for axis in range(4))]


@slim.add_arg_scope
def drop_path(net: Any, keep_prob: Any, is_training: bool = True) -> Any:
    """Zeroes the whole path of each example with probability `1 - keep_prob`, in training.

    Args:
      net: `[batch, ...]` of rank 4.
      keep_prob: in (0, 1], a number or a scalar tensor; paths that stay are divided by it, so
        that the expected value does not change.
      is_training: otherwise `net` is returned as it is.
    """
    if not is_training:
        return net
    keep_prob = tf.cast(keep_prob, net.dtype)
    uniform = tf.random_uniform([tf.shape(net)[0], 1, 1, 1], dtype=net.dtype)
    return net / keep_prob * tf.floor(uniform + keep_prob)
