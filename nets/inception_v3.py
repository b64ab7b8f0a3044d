"""Inception v3: factorized convolutions and an auxiliary classifier.

C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the Inception Architecture for
Computer Vision", https://arxiv.org/abs/1512.00567. The feature extractor is tf-slim's.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tf_slim.nets import inception_v3 as slim_inception_v3

from model_deploy import slim
from nets.inception_utils import PooledHead, fitting_kernel, inception_arg_scope
from nets.parts.depth import check_depths, scaled
from nets.parts.inception_heads import smallest_image
from nets.parts.network import Images, Network, check_choice, takes
from nets.parts.squeeze import squeeze_pixel

inception_v3_arg_scope = inception_arg_scope

_END_POINTS = (
    *("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3", "MaxPool_3a_3x3"),
    *("Conv2d_3b_1x1", "Conv2d_4a_3x3", "MaxPool_5a_3x3", "Mixed_5b", "Mixed_5c", "Mixed_5d"),
    *("Mixed_6a", "Mixed_6b", "Mixed_6c", "Mixed_6d", "Mixed_6e"),
    *("Mixed_7a", "Mixed_7b", "Mixed_7c"),
)
_HEAD = PooledHead(side=8)


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds the feature extractor up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      final_endpoint: the last layer to build: `Conv2d_1a_3x3`, `Conv2d_2a_3x3`,
        `Conv2d_2b_3x3`, `MaxPool_3a_3x3`, `Conv2d_3b_1x1`, `Conv2d_4a_3x3`, `MaxPool_5a_3x3`,
        `Mixed_5b` to `Mixed_5d`, `Mixed_6a` to `Mixed_6e`, or `Mixed_7a` to `Mixed_7c`.
      min_depth: least number of channels of a layer.
      depth_multiplier: factor of every layer's number of channels, more than 0.
      scope: variable scope.

    Returns:
      That layer's output, and all outputs by name.

    Raises:
      ValueError: if there is no such layer, or a depth is not positive.
    """
    check_choice("final_endpoint", final_endpoint, _END_POINTS)
    check_depths(depth_multiplier, min_depth)
    return slim_inception_v3.inception_v3_base(
        inputs, final_endpoint, min_depth, depth_multiplier, scope
    )


@takes(Images(size=299, smallest=smallest_image))
def inception_v3(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Callable[..., Any] = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    create_aux_logits: bool = True,
    scope: str = "InceptionV3",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception v3.

    Args:
      inputs: `[batch, height, width, 1 or 3]` float32; designed for 299 x 299, at least 107 x 107
        with the auxiliary head and 75 x 75 without.
      num_classes: width of the logits; 0 or None returns the pooled features.
      is_training: whether dropout is active and batch normalization uses the batch.
      dropout_keep_prob: share of the features that dropout keeps.
      min_depth: least number of channels of a layer.
      depth_multiplier: factor of every layer's number of channels, more than 0.
      prediction_fn: makes `Predictions` from the logits.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      reuse: whether to use the variables of an earlier call.
      create_aux_logits: whether to build the auxiliary head. One of its weights is as large as
        the feature map below it, so that its shape and name change with images below 299 x 299.
      scope: variable scope.
      global_pool: whether to average over the whole feature map, of any size.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, 2048]`; and the end points: those
      of `inception_v3_base`, with classes `AuxLogits`, then `AvgPool_1a` or `global_pool`, and
      with classes `PreLogits`, `Logits` and `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank, channel count or is too small, `num_classes` is
        negative, a depth is not positive, or `spatial_squeeze` meets logits of more than one
        position.
    """
    check_depths(depth_multiplier, min_depth)
    with (
        tf.variable_scope(scope, "InceptionV3", [inputs], reuse=reuse) as opened,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(
            inputs, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=opened
        )
        if create_aux_logits and num_classes:
            widths = [scaled(depth, depth_multiplier, min_depth) for depth in (128, 768)]
            auxiliary = _auxiliary_logits(end_points["Mixed_6e"], widths, num_classes)
            if spatial_squeeze:
                auxiliary = squeeze_pixel(auxiliary, [1, 2])
            end_points["AuxLogits"] = auxiliary
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


def _auxiliary_logits(net: Any, widths: list[int], num_classes: int) -> Any:
    """Classifies the 17 x 17 feature map (of 299 x 299 images): section 4 of the paper."""
    with tf.variable_scope("AuxLogits"):
        net = slim.avg_pool2d(net, [5, 5], 3, padding="VALID", scope="AvgPool_1a_5x5")
        net = slim.conv2d(net, widths[0], [1, 1], scope="Conv2d_1b_1x1")
        kernel = fitting_kernel(net, 5)
        net = slim.conv2d(
            net,
            widths[1],
            kernel,
            weights_initializer=tf.truncated_normal_initializer(stddev=0.01),
            padding="VALID",
            scope=f"Conv2d_2a_{kernel[0]}x{kernel[1]}",
        )
        return slim.conv2d(
            net,
            num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            weights_initializer=tf.truncated_normal_initializer(stddev=0.001),
            scope="Conv2d_2b_1x1",
        )


NETWORKS = {"inception_v3": Network(inception_v3, inception_v3_arg_scope)}
