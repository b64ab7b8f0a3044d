"""Inception v3: factorized convolutions and an auxiliary classifier.

C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, "Rethinking the Inception Architecture for
Computer Vision", https://arxiv.org/abs/1512.00567.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.inception_utils import PooledHead, fitting_kernel, inception_arg_scope
from nets.parts import branches as layers
from nets.parts.branches import Layer, avg_pool, branches, chain, concat, in_scope, max_pool
from nets.parts.depth import check_depths, scaled
from nets.parts.inception_heads import smallest_image
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, takes
from nets.parts.squeeze import squeeze_pixel

inception_v3_arg_scope = inception_arg_scope

_HEAD = PooledHead(side=8)

# `branches.conv`, for widths that the depth multiplier changes.
_Conv = Callable[..., Layer]


def _block_5(conv: _Conv, pooled: int, double_scopes: bool = False) -> Layer:
    """35 x 35 to the same (figure 5), with one 5x5 left."""
    place, scope = ("0b", "Conv_1_0c_5x5") if double_scopes else ("0a", None)
    return branches(
        conv("0a", 1, 1, 64),
        chain(conv(place, 1, 1, 48), conv("0b", 5, 5, 64, scope=scope)),
        chain(conv("0a", 1, 1, 64), conv("0b", 3, 3, 96), conv("0c", 3, 3, 96)),
        chain(avg_pool(), conv("0b", 1, 1, pooled)),
    )


def _block_6a(conv: _Conv) -> Layer:
    """35 x 35 x 288 to 17 x 17 x 768 (figure 10)."""
    # 3x3 in spite of their scope, which is that of published checkpoints.
    halving: dict[str, Any] = {"stride": 2, "padding": "VALID", "scope": "Conv2d_1a_1x1"}
    return branches(
        conv("1a", 3, 3, 384, **halving),
        chain(conv("0a", 1, 1, 64), conv("0b", 3, 3, 96), conv("1a", 3, 3, 96, **halving)),
        max_pool("1a", 2),
    )


def _block_6(conv: _Conv, inner: int) -> Layer:
    """17 x 17 x 768 to the same (figure 6)."""
    return branches(
        conv("0a", 1, 1, 192),
        chain(conv("0a", 1, 1, inner), conv("0b", 1, 7, inner), conv("0c", 7, 1, 192)),
        chain(
            conv("0a", 1, 1, inner),
            conv("0b", 7, 1, inner),
            conv("0c", 1, 7, inner),
            conv("0d", 7, 1, inner),
            conv("0e", 1, 7, 192),
        ),
        chain(avg_pool(), conv("0b", 1, 1, 192)),
    )


def _block_7a(conv: _Conv) -> Layer:
    """17 x 17 x 768 to 8 x 8 x 1280."""
    halving: dict[str, Any] = {"stride": 2, "padding": "VALID"}
    return branches(
        chain(conv("0a", 1, 1, 192), conv("1a", 3, 3, 320, **halving)),
        chain(
            conv("0a", 1, 1, 192),
            conv("0b", 1, 7, 192),
            conv("0c", 7, 1, 192),
            conv("1a", 3, 3, 192, **halving),
        ),
        max_pool("1a", 2),
    )


def _block_7(conv: _Conv, place: str) -> Layer:
    """8 x 8 to 8 x 8 x 2048 (figure 7); checkpoints differ in the place of one 3x1."""
    return branches(
        conv("0a", 1, 1, 320),
        chain(conv("0a", 1, 1, 384), concat(conv("0b", 1, 3, 384), conv(place, 3, 1, 384))),
        chain(
            conv("0a", 1, 1, 448),
            conv("0b", 3, 3, 384),
            concat(conv("0c", 1, 3, 384), conv("0d", 3, 1, 384)),
        ),
        chain(avg_pool(), conv("0b", 1, 1, 192)),
    )


def _steps(conv: _Conv) -> dict[str, Layer]:
    mixed = {
        "Mixed_5b": _block_5(conv, 32),
        "Mixed_5c": _block_5(conv, 64, double_scopes=True),
        "Mixed_5d": _block_5(conv, 64),
        "Mixed_6a": _block_6a(conv),
        "Mixed_6b": _block_6(conv, 128),
        "Mixed_6c": _block_6(conv, 160),
        "Mixed_6d": _block_6(conv, 160),
        "Mixed_6e": _block_6(conv, 192),
        "Mixed_7a": _block_7a(conv),
        "Mixed_7b": _block_7(conv, "0b"),
        "Mixed_7c": _block_7(conv, "0c"),
    }
    return {
        "Conv2d_1a_3x3": conv("1a", 3, 3, 32, stride=2, padding="VALID"),
        "Conv2d_2a_3x3": conv("2a", 3, 3, 32, padding="VALID"),
        "Conv2d_2b_3x3": conv("2b", 3, 3, 64),
        "MaxPool_3a_3x3": max_pool("3a", 2),
        "Conv2d_3b_1x1": conv("3b", 1, 1, 80, padding="VALID"),
        "Conv2d_4a_3x3": conv("4a", 3, 3, 192, padding="VALID"),
        "MaxPool_5a_3x3": max_pool("5a", 2),
        **{name: in_scope(name, layer) for name, layer in mixed.items()},
    }


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
    check_depths(depth_multiplier, min_depth)

    def conv(place: str, height: int, width: int, filters: int, **keywords: Any) -> Layer:
        filters = scaled(filters, depth_multiplier, min_depth)
        return layers.conv(place, height, width, filters, **keywords)

    with (
        tf.variable_scope(scope, "InceptionV3", [inputs]),
        slim.arg_scope([slim.conv2d], stride=1, padding="SAME"),
    ):
        return layers.run_steps(inputs, _steps(conv), final_endpoint)


@takes(Images(size=299, smallest=smallest_image, other_channels=True))
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
      inputs: `[batch, height, width, channels]` float32; designed for 299 x 299, at least 107 x 107
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
      ValueError: if `inputs` has another rank, unknown channels or is too small, `num_classes` is
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
            auxiliary = _auxiliary_logits(
                end_points["Mixed_6e"], widths, num_classes, spatial_squeeze
            )
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


def _auxiliary_logits(net: Any, widths: list[int], num_classes: int, spatial_squeeze: bool) -> Any:
    """Classifies the 17 x 17 feature map (of 299 x 299 images): section 4 of the paper."""
    with tf.variable_scope("AuxLogits"):
        net = slim.avg_pool2d(net, [5, 5], 3, padding="VALID", scope="AvgPool_1a_5x5")
        net = slim.conv2d(net, widths[0], [1, 1], scope="Conv2d_1b_1x1")
        kernel = fitting_kernel(net, 5)
        net = slim.conv2d(
            net,
            widths[1],
            kernel,
            weights_initializer=trunc_normal(0.01),
            padding="VALID",
            scope=f"Conv2d_2a_{kernel[0]}x{kernel[1]}",
        )
        logits = slim.conv2d(
            net,
            num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            weights_initializer=trunc_normal(0.001),
            scope="Conv2d_2b_1x1",
        )
        return squeeze_pixel(logits, [1, 2]) if spatial_squeeze else logits


NETWORKS = {"inception_v3": Network(inception_v3, inception_v3_arg_scope)}
