"""Inception v1 (GoogLeNet) with batch normalization.

C. Szegedy et al., "Going Deeper with Convolutions", https://arxiv.org/abs/1409.4842, with 3x3 in
place of 5x5 convolutions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.inception_utils import PooledHead, inception_arg_scope
from nets.parts.branches import Layer, branches, chain, conv, in_scope, max_pool, run_steps
from nets.parts.inception_v1_layers import LAYERS, Conv, Mixed, Pool
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, takes

inception_v1_arg_scope = inception_arg_scope

_HEAD = PooledHead(
    side=7,
    shrinks=False,
    stride=1,
    pool="AvgPool_0a_7x7",
    dropout="Dropout_0b",
    logits="Conv2d_0c_1x1",
    keeps_features=False,
    predicts_in_scope=True,
)


def _layer(name: str, layer: Conv | Pool | Mixed) -> Layer:
    place = name.split("_")[1]
    if isinstance(layer, Conv):
        return conv(place, layer.side, layer.side, layer.width, stride=layer.stride)
    if isinstance(layer, Pool):
        return max_pool(place, layer.stride[1], "SAME", side=layer.kernel[1])
    # Published checkpoints call one convolution of one block otherwise.
    return in_scope(name, _mixed(layer, "0a" if name == "Mixed_5b" else "0b"))


def _mixed(widths: Mixed, third_place: str) -> Layer:
    return branches(
        conv("0a", 1, 1, widths.branch_0),
        chain(conv("0a", 1, 1, widths.branch_1[0]), conv("0b", 3, 3, widths.branch_1[1])),
        chain(conv("0a", 1, 1, widths.branch_2[0]), conv(third_place, 3, 3, widths.branch_2[1])),
        chain(max_pool("0a", 1, "SAME"), conv("0b", 1, 1, widths.branch_3)),
    )


_STEPS = {name: _layer(name, layer) for name, layer in LAYERS.items()}
_BLOCKS = dict(list(_STEPS.items())[list(_STEPS).index("Mixed_3b") :])


def inception_v1_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    include_root_block: bool = True,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """Builds the feature extractor up to `final_endpoint`.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      final_endpoint: the last layer to build: `Conv2d_1a_7x7`, `MaxPool_2a_3x3`,
        `Conv2d_2b_1x1`, `Conv2d_2c_3x3`, `MaxPool_3a_3x3`, `Mixed_3b`, `Mixed_3c`,
        `MaxPool_4a_3x3`, `Mixed_4b` to `Mixed_4f`, `MaxPool_5a_2x2`, `Mixed_5b` or `Mixed_5c`.
      include_root_block: whether to begin with the layers before `Mixed_3b`, of stride 8;
        otherwise `inputs` are what `Mixed_3b` takes.
      scope: variable scope.

    Returns:
      That layer's output, and all outputs by name.

    Raises:
      ValueError: if there is no such layer.
    """
    with (
        tf.variable_scope(scope, "InceptionV1", [inputs]),
        slim.arg_scope([slim.conv2d, slim.fully_connected], weights_initializer=trunc_normal(0.01)),
        slim.arg_scope([slim.conv2d], stride=1, padding="SAME"),
    ):
        return run_steps(inputs, _STEPS if include_root_block else _BLOCKS, final_endpoint)


def _smallest(arguments: Mapping[str, Any]) -> int:
    """Without `global_pool`, strides of 32 must leave the 7 x 7 map that the head pools."""
    return 1 if arguments["global_pool"] else 193


@takes(Images(size=224, smallest=_smallest, other_channels=True))
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
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224, at least
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
      ValueError: if `inputs` has another rank, unknown channels or is too small, `num_classes` is
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
