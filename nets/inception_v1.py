"""Inception v1 (GoogLeNet) with batch normalization.

C. Szegedy et al., "Going Deeper with Convolutions", https://arxiv.org/abs/1409.4842. The feature
extractor is tf-slim's.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf
from tf_slim.nets import inception_v1 as slim_inception_v1

from model_deploy import slim
from nets.inception_utils import PooledHead, inception_arg_scope
from nets.parts.network import Images, Network, check_choice, takes

inception_v1_arg_scope = inception_arg_scope

_END_POINTS = (
    *("Conv2d_1a_7x7", "MaxPool_2a_3x3", "Conv2d_2b_1x1", "Conv2d_2c_3x3", "MaxPool_3a_3x3"),
    *("Mixed_3b", "Mixed_3c", "MaxPool_4a_3x3"),
    *("Mixed_4b", "Mixed_4c", "Mixed_4d", "Mixed_4e", "Mixed_4f", "MaxPool_5a_2x2"),
    *("Mixed_5b", "Mixed_5c"),
)
_HEAD = PooledHead(
    side=7,
    shrinks=False,
    stride=1,
    pool="AvgPool_0a_7x7",
    dropout="Dropout_0b",
    logits="Conv2d_0c_1x1",
    keeps_features=False,
)


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """Builds the feature extractor up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      final_endpoint: the last layer to build: `Conv2d_1a_7x7`, `MaxPool_2a_3x3`,
        `Conv2d_2b_1x1`, `Conv2d_2c_3x3`, `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`,
        `MaxPool_4a_3x3`, `Mixed_4b` to `Mixed_4f`, `MaxPool_5a_2x2`, `Mixed_5b` or `Mixed_5c`.
      scope: variable scope.

    Returns:
      That layer's output, and all outputs by name.

    Raises:
      ValueError: if there is no such layer.
    """
    check_choice("final_endpoint", final_endpoint, _END_POINTS)
    return slim_inception_v1.inception_v1_base(inputs, final_endpoint, scope)


def _smallest(arguments: Mapping[str, Any]) -> int:
    """Without `global_pool`, strides of 32 must leave the 7 x 7 map that the head pools."""
    return 1 if arguments["global_pool"] else 193


@takes(Images(size=224, smallest=_smallest))
def inception_v1(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Callable[..., Any] = slim.softmax,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str = "InceptionV1",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception v1.

    Args:
      inputs: `[batch, height, width, 1 or 3]` float32; designed for 224 x 224, at least
        193 x 193 without `global_pool`.
      num_classes: width of the logits; 0 or None returns the pooled features.
      is_training: whether dropout is active and batch normalization uses the batch.
      dropout_keep_prob: share of the features that dropout keeps.
      prediction_fn: makes `Predictions` from the logits.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      reuse: whether to use the variables of an earlier call.
      scope: variable scope.
      global_pool: whether to average over the whole feature map, of any size.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, 1024]`; and the end points: those
      of `inception_v1_base`, `AvgPool_0a_7x7` or `global_pool`, and with classes `Logits` and
      `Predictions`.

    Raises:
      ValueError: if `inputs` has another rank, channel count or is too small, `num_classes` is
        negative, or `spatial_squeeze` meets logits of more than one position.
    """
    with (
        tf.variable_scope(scope, "InceptionV1", [inputs], reuse=reuse) as opened,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = inception_v1_base(inputs, scope=opened)
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


NETWORKS = {"inception_v1": Network(inception_v1, inception_v1_arg_scope)}
