"""Inception v2: batch normalization, and two 3x3 convolutions in place of one 5x5.

S. Ioffe, C. Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal
Covariate Shift", https://arxiv.org/abs/1502.03167, figure 5. The feature extractor is tf-slim's.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf
from tf_slim.nets import inception_v2 as slim_inception_v2

from model_deploy import slim
from nets.inception_utils import PooledHead, inception_arg_scope
from nets.parts.depth import check_depths
from nets.parts.network import Images, Network, check_choice, takes

inception_v2_arg_scope = inception_arg_scope

_END_POINTS = (
    *("Conv2d_1a_7x7", "MaxPool_2a_3x3", "Conv2d_2b_1x1", "Conv2d_2c_3x3", "MaxPool_3a_3x3"),
    *("Mixed_3b", "Mixed_3c", "Mixed_4a", "Mixed_4b", "Mixed_4c", "Mixed_4d", "Mixed_4e"),
    *("Mixed_5a", "Mixed_5b", "Mixed_5c"),
)
_HEAD = PooledHead(side=7)


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Builds the feature extractor up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      final_endpoint: the last layer to build: `Conv2d_1a_7x7`, `MaxPool_2a_3x3`,
        `Conv2d_2b_1x1`, `Conv2d_2c_3x3`, `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`, `Mixed_4a` to
        `Mixed_4e`, or `Mixed_5a` to `Mixed_5c`.
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
    return slim_inception_v2.inception_v2_base(
        inputs, final_endpoint, min_depth, depth_multiplier, scope
    )


@takes(Images(size=224))
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
      inputs: `[batch, height, width, 1 or 3]` float32; designed for 224 x 224.
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
      ValueError: if `inputs` has another rank, channel count or is too small, `num_classes` is
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
