"""Inception v1 over video, as I3D and S3D-G share it.

Quo Vadis, Action Recognition? A New Model and the Kinetics Dataset, Carreira and
Zisserman 2017, https://arxiv.org/abs/1705.07750, figure 3; and Rethinking Spatiotemporal
Feature Learning, Xie et al. 2018, https://arxiv.org/abs/1712.04851.

Video is `[batch, frames, height, width, channels]` (NDHWC) unless said otherwise.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import check_choice


class Pool(NamedTuple):
    """A max pooling: kernel and stride over [frames, height, width]."""

    kernel: list[int]
    stride: list[int]


class Mixed(NamedTuple):
    """The widths of an Inception block: the four branches, those two with a 1x1 in front."""

    branch_0: int
    branch_1: tuple[int, int]
    branch_2: tuple[int, int]
    branch_3: int


# Inception v1 after its first convolution, by end point; a number is the width of a convolution.
_LAYERS: dict[str, int | Pool | Mixed] = {
    "MaxPool_2a_3x3": Pool([1, 3, 3], [1, 2, 2]),
    "Conv2d_2b_1x1": 64,
    "Conv2d_2c_3x3": 192,
    "MaxPool_3a_3x3": Pool([1, 3, 3], [1, 2, 2]),
    "Mixed_3b": Mixed(64, (96, 128), (16, 32), 32),
    "Mixed_3c": Mixed(128, (128, 192), (32, 96), 64),
    "MaxPool_4a_3x3": Pool([3, 3, 3], [2, 2, 2]),
    "Mixed_4b": Mixed(192, (96, 208), (16, 48), 64),
    "Mixed_4c": Mixed(160, (112, 224), (24, 64), 64),
    "Mixed_4d": Mixed(128, (128, 256), (24, 64), 64),
    "Mixed_4e": Mixed(112, (144, 288), (32, 64), 64),
    "Mixed_4f": Mixed(256, (160, 320), (32, 128), 128),
    "MaxPool_5a_2x2": Pool([2, 2, 2], [2, 2, 2]),
    "Mixed_5b": Mixed(256, (160, 320), (32, 128), 128),
    "Mixed_5c": Mixed(384, (192, 384), (48, 128), 128),
}
_FIRST = "Conv2d_1a_7x7"
END_POINTS = (_FIRST, *_LAYERS)
# Layers with a kernel over more than one pixel, which can look along time as well.
TEMPORAL_LAYERS = (
    "Conv2d_2c_3x3",
    *(name for name, layer in _LAYERS.items() if isinstance(layer, Mixed)),
)


def _centre_tap(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
    """Initializes [frames, 1, 1, depth, depth] so that the convolution changes nothing."""
    del partition_info  # asked for by TensorFlow's calling convention
    taps = np.zeros(shape)
    taps[len(taps) // 2, 0, 0] = np.eye(*taps.shape[3:])
    return tf.constant(taps, dtype)


@slim.add_arg_scope
def conv3d_spatiotemporal(
    inputs: Any,
    num_outputs: int,
    kernel_size: list[int],
    stride: int = 1,
    separable: bool = False,
    scope: str = "",
) -> Any:
    """Convolves video in space and time at once, or one after the other if `separable`.

    The convolution along time has biases, no normalization, and starts as the identity.

    Args:
      inputs: `[batch, frames, height, width, channels]` float32.
      num_outputs: channels of the result.
      kernel_size: over [frames, height, width].
      stride: along all three.
      separable: whether to split a kernel over more than one frame.
      scope: variable scope; the convolution along time is `temporal` inside.

    Returns:
      `[batch, frames / stride, height / stride, width / stride, num_outputs]`.
    """
    frames, height, width = kernel_size
    if not separable or frames == 1:
        return slim.conv3d(inputs, num_outputs, kernel_size, stride=stride, scope=scope)
    net = slim.conv3d(
        inputs, num_outputs, [1, height, width], stride=[1, stride, stride], scope=scope
    )
    return slim.conv3d(
        net,
        num_outputs,
        [frames, 1, 1],
        stride=[stride, 1, 1],
        normalizer_fn=None,
        weights_initializer=_centre_tap,
        scope=f"{scope}/temporal",
    )


def self_gating(net: Any, scope: str, data_format: str) -> Any:
    """Scales channels by a gate computed from their averages (Xie et al., section 4.3).

    Args:
      net: `[batch, frames, height, width, channels]` float32.
      scope: variable scope; the gate's is `self_gating` inside.
      data_format: NDHWC, or NCDHW if `net` is in that order.

    Returns:
      The same shape, each channel of each video times a number between 0 and 1.
    """
    axes = [data_format.index(letter) for letter in "DHW"]
    averages = tf.reduce_mean(net, axes, keepdims=True)
    gate = slim.conv3d(
        averages,
        net.shape.as_list()[data_format.index("C")],
        [1, 1, 1],
        activation_fn=tf.nn.sigmoid,
        normalizer_fn=None,
        biases_initializer=None,
        data_format=data_format,
        scope=f"{scope}/self_gating/transformer_W",
    )
    return net * gate


@dataclasses.dataclass(frozen=True)
class InceptionV1Video:
    """Inception v1 over video, in the variations of I3D and S3D-G.

    Attributes:
      first_temporal_kernel_size: frames that the first convolution looks at.
      first_separable: whether the first convolution follows the arg scope of
        `conv3d_spatiotemporal`; otherwise it is one convolution.
      temporal_conv_startat: the first layer that looks at 3 frames, not 1; None for none.
      gating_startat: the first layer with self gating; None for none.
      depth: width of a layer, from its width in the paper.
      data_format: NDHWC or NCDHW.
    """

    first_temporal_kernel_size: int
    first_separable: bool = True
    temporal_conv_startat: str | None = TEMPORAL_LAYERS[0]
    gating_startat: str | None = None
    depth: Callable[[int], int] = int
    data_format: str = "NDHWC"

    def __post_init__(self) -> None:
        check_choice("data_format", self.data_format, ("NDHWC", "NCDHW"))
        check_choice("first_temporal_kernel_size", self.first_temporal_kernel_size, (1, 3, 5, 7))
        for field in ("temporal_conv_startat", "gating_startat"):
            check_choice(field, getattr(self, field), (None, *TEMPORAL_LAYERS))

    def base(self, inputs: Any, final_endpoint: str) -> tuple[Any, dict[str, Any]]:
        """Builds the layers up to `final_endpoint`, one of `END_POINTS`.

        Args:
          inputs: `[batch, frames, height, width, channels]` float32.
          final_endpoint: name of the last layer.

        Returns:
          The last layer's output (of the whole network `[batch, frames / 8, height / 32,
          width / 32, 1024]`), and the end points in order.

        Raises:
          ValueError: if there is no such end point.
        """
        check_choice("final_endpoint", final_endpoint, END_POINTS)
        layers = [slim.conv3d, slim.max_pool3d]
        with (
            slim.arg_scope(layers, padding="SAME", data_format=self.data_format),
            slim.arg_scope([slim.max_pool3d], stride=1),
            slim.arg_scope(
                [slim.conv3d], weights_initializer=tf.truncated_normal_initializer(stddev=0.01)
            ),
            slim.arg_scope([slim.batch_norm], data_format=self.data_format.replace("D", "")),
        ):
            net = self._first(inputs)
            end_points = {_FIRST: net}
            for name in END_POINTS[1 : END_POINTS.index(final_endpoint) + 1]:
                net = end_points[name] = self._layer(net, name)
        return net, end_points

    def _first(self, inputs: Any) -> Any:
        separable = {} if self.first_separable else {"separable": False}
        kernel = [self.first_temporal_kernel_size, 7, 7]
        return conv3d_spatiotemporal(
            inputs, self.depth(64), kernel, stride=2, scope=_FIRST, **separable
        )

    def _layer(self, net: Any, name: str) -> Any:
        layer = _LAYERS[name]
        if isinstance(layer, Pool):
            return slim.max_pool3d(net, layer.kernel, stride=layer.stride, scope=name)
        if isinstance(layer, Mixed):
            return self._mixed(net, name, layer)
        if name in TEMPORAL_LAYERS:
            return self._gated(self._conv(net, layer, name, name), name, name)
        return slim.conv3d(net, self.depth(layer), [1, 1, 1], scope=name)

    def _mixed(self, net: Any, name: str, widths: Mixed) -> Any:
        def pointwise(inputs: Any, width: int, scope: str) -> Any:
            return slim.conv3d(inputs, self.depth(width), [1, 1, 1], scope=scope)

        branches = []
        with tf.variable_scope(name):
            with tf.variable_scope("Branch_0"):
                branch = pointwise(net, widths.branch_0, "Conv2d_0a_1x1")
                branches.append(self._gated(branch, "Conv2d_0a_1x1", name))
            for number, (reduced, width) in enumerate((widths.branch_1, widths.branch_2), start=1):
                with tf.variable_scope(f"Branch_{number}"):
                    branch = pointwise(net, reduced, "Conv2d_0a_1x1")
                    branch = self._conv(branch, width, "Conv2d_0b_3x3", name)
                    branches.append(self._gated(branch, "Conv2d_0b_3x3", name))
            with tf.variable_scope("Branch_3"):
                branch = slim.max_pool3d(net, [3, 3, 3], scope="MaxPool_0a_3x3")
                branch = pointwise(branch, widths.branch_3, "Conv2d_0b_1x1")
                branches.append(self._gated(branch, "Conv2d_0b_1x1", name))
            return tf.concat(branches, axis=self.data_format.index("C"))

    def _conv(self, net: Any, width: int, scope: str, layer: str) -> Any:
        frames = 3 if _reached(layer, self.temporal_conv_startat) else 1
        return conv3d_spatiotemporal(net, self.depth(width), [frames, 3, 3], scope=scope)

    def _gated(self, net: Any, scope: str, layer: str) -> Any:
        if not _reached(layer, self.gating_startat):
            return net
        return self_gating(net, scope, self.data_format)


def _reached(layer: str, start: str | None) -> bool:
    return start is not None and END_POINTS.index(layer) >= END_POINTS.index(start)
