"""Inception v2: batch normalization, and two 3x3 convolutions in place of one 5x5.

S. Ioffe, C. Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal
Covariate Shift", https://arxiv.org/abs/1502.03167, figure 5.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.inception_utils import PooledHead, inception_arg_scope
from nets.parts.branches import (
    Layer,
    avg_pool,
    branches,
    chain,
    conv,
    in_scope,
    max_pool,
    run_steps,
)
from nets.parts.depth import check_depths, scaled
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, check_choice, takes

inception_v2_arg_scope = inception_arg_scope

_HEAD = PooledHead(side=7)


class _Mixed(NamedTuple):
    """The widths of a block; `double` has two 3x3 convolutions of the second width."""

    pointwise: int
    single: tuple[int, int]
    double: tuple[int, int]
    pooled: int
    pool: Callable[[], Layer] = avg_pool


class _Halving(NamedTuple):
    """The widths of a block of stride 2."""

    single: tuple[int, int]
    double: tuple[int, int]


_MIXED: dict[str, _Mixed | _Halving] = {
    "Mixed_3b": _Mixed(64, (64, 64), (64, 96), 32),
    "Mixed_3c": _Mixed(64, (64, 96), (64, 96), 64),
    "Mixed_4a": _Halving((128, 160), (64, 96)),
    "Mixed_4b": _Mixed(224, (64, 96), (96, 128), 128),
    "Mixed_4c": _Mixed(192, (96, 128), (96, 128), 128),
    "Mixed_4d": _Mixed(160, (128, 160), (128, 160), 96),
    "Mixed_4e": _Mixed(96, (128, 192), (160, 192), 96),
    "Mixed_5a": _Halving((128, 192), (192, 256)),
    "Mixed_5b": _Mixed(352, (192, 320), (160, 224), 128),
    "Mixed_5c": _Mixed(
        352, (192, 320), (192, 224), 128, pool=functools.partial(max_pool, "0a", 1, "SAME")
    ),
}


class _Builder(NamedTuple):
    """Makes the layers at one depth.

    Attributes:
      depth: number of channels, from that of the paper.
      channels_axis: position of the channels in a shape.
    """

    depth: Callable[[int], int]
    channels_axis: int

    def root(self, use_separable_conv: bool) -> dict[str, Layer]:
        """Returns the layers before the blocks, by end point."""
        first = self._separable if use_separable_conv else self._conv("1a", 7, 64, 1.0, stride=2)
        return {
            "Conv2d_1a_7x7": first,
            "MaxPool_2a_3x3": max_pool("2a", 2, "SAME"),
            "Conv2d_2b_1x1": self._conv("2b", 1, 64, 0.1),
            "Conv2d_2c_3x3": self._conv("2c", 3, 192),
            "MaxPool_3a_3x3": max_pool("3a", 2, "SAME"),
        }

    def block(self, widths: _Mixed | _Halving) -> Layer:
        """Returns a block of parallel branches."""
        reduced, width = widths.single
        double_reduced, double = widths.double
        if isinstance(widths, _Halving):
            return branches(
                chain(self._conv("0a", 1, reduced, 0.09), self._conv("1a", 3, width, stride=2)),
                chain(
                    self._conv("0a", 1, double_reduced, 0.09),
                    self._conv("0b", 3, double),
                    self._conv("1a", 3, double, stride=2),
                ),
                max_pool("1a", 2, "SAME"),
                axis=self.channels_axis,
            )
        return branches(
            self._conv("0a", 1, widths.pointwise),
            chain(self._conv("0a", 1, reduced, 0.09), self._conv("0b", 3, width)),
            chain(
                self._conv("0a", 1, double_reduced, 0.09),
                self._conv("0b", 3, double),
                self._conv("0c", 3, double),
            ),
            chain(widths.pool(), self._conv("0b", 1, widths.pooled, 0.1)),
            axis=self.channels_axis,
        )

    def _conv(
        self, place: str, side: int, width: int, stddev: float | None = None, stride: int = 1
    ) -> Layer:
        start = {} if stddev is None else {"weights_initializer": trunc_normal(stddev)}
        return conv(place, side, side, self.depth(width), stride=stride, **start)

    def _separable(self, net: Any) -> Any:
        """Convolves each colour alone, to 8 channels, and then across them."""
        width = self.depth(64)
        return slim.separable_conv2d(
            net,
            width,
            [7, 7],
            depth_multiplier=max(min(width // 3, 8), 1),
            stride=2,
            padding="SAME",
            weights_initializer=trunc_normal(1.0),
            scope="Conv2d_1a_7x7",
        )


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    use_separable_conv: bool = True,
    data_format: str = "NHWC",
    include_root_block: bool = True,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds the feature extractor up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32, or in the order of `data_format`.
      final_endpoint: the last layer to build: `Conv2d_1a_7x7`, `MaxPool_2a_3x3`,
        `Conv2d_2b_1x1`, `Conv2d_2c_3x3`, `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`, `Mixed_4a` to
        `Mixed_4e`, or `Mixed_5a` to `Mixed_5c`.
      min_depth: least number of channels of a layer.
      depth_multiplier: factor of every layer's number of channels, more than 0.
      use_separable_conv: whether `Conv2d_1a_7x7` is a separable convolution with biases, without
        normalization; otherwise it is like the others.
      data_format: `NHWC`, or without the separable convolution `NCHW`, of inputs and end points.
      include_root_block: whether to begin with the layers before `Mixed_3b`, of stride 8;
        otherwise `inputs` are what `Mixed_3b` takes.
      scope: variable scope.

    Returns:
      That layer's output, and all outputs by name.

    Raises:
      ValueError: if there is no such layer, a depth is not positive, or the data format is
        another one or does not go with the separable convolution.
    """
    check_depths(depth_multiplier, min_depth)
    check_choice("data_format", data_format, ("NHWC", "NCHW"))
    if use_separable_conv and data_format != "NHWC":
        raise ValueError(
            f"data_format must be NHWC with use_separable_conv, got {data_format!r}:"
            " separable convolutions have no other"
        )
    builder = _Builder(
        lambda width: scaled(width, depth_multiplier, min_depth), data_format.index("C")
    )
    steps = builder.root(use_separable_conv) if include_root_block else {}
    steps |= {name: in_scope(name, builder.block(widths)) for name, widths in _MIXED.items()}
    pools = [slim.max_pool2d, slim.avg_pool2d]
    # TF-Slim leaves normalization over the last axis, whatever the channels' is.
    normalization = {} if data_format == "NHWC" else {"data_format": data_format}
    with (
        tf.variable_scope(scope, "InceptionV2", [inputs]),
        slim.arg_scope([slim.conv2d, *pools], stride=1, padding="SAME", data_format=data_format),
        slim.arg_scope([slim.batch_norm], **normalization),
    ):
        return run_steps(inputs, steps, final_endpoint)


@takes(Images(size=224, other_channels=True))
def inception_v2(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Callable[..., Any] = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str = "InceptionV2",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception v2.

    Args:
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224.
      num_classes: width of the logits; 0 or None returns the pooled features.
      is_training: whether dropout is active and batch normalization uses the batch.
      dropout_keep_prob: share of the features that dropout keeps.
      min_depth: least number of channels of a layer.
      depth_multiplier: factor of every layer's number of channels, more than 0.
      prediction_fn: makes `Predictions` from the logits.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      reuse: whether to use the variables of an earlier call.
      scope: variable scope.
      global_pool: whether to average over the whole feature map, of any size.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, 1024]`; and the end points: those
      of `inception_v2_base`, `AvgPool_1a` or `global_pool`, and with classes `PreLogits`,
      `Logits` and `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank, unknown channels or is too small, `num_classes` is
        negative, a depth is not positive, or `spatial_squeeze` meets logits of more than one
        position.
    """
    check_depths(depth_multiplier, min_depth)
    with (
        tf.variable_scope(scope, "InceptionV2", [inputs], reuse=reuse) as opened,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = inception_v2_base(
            inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened
        )
        net = _HEAD.build(
            net,
            end_points,
            num_classes=num_classes,
            dropout_keep_prob=dropout_keep_prob,
            prediction_fn=prediction_fn,
            spatial_squeeze=spatial_squeeze,
            global_pool=global_pool,
        )
        return net, end_points


NETWORKS = {"inception_v2": Network(inception_v2, inception_v2_arg_scope)}
