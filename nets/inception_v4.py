"""Inception-v4.

After C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning" (2016), https://arxiv.org/abs/1602.07261, figures 3 to 9.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.inception_utils import inception_arg_scope
from nets.parts.branches import (
    Layer,
    avg_pool,
    branches,
    chain,
    concat,
    conv,
    in_scope,
    max_pool,
    run_steps,
)
from nets.parts.inception_heads import auxiliary_head, classification_head, smallest_image
from nets.parts.network import Images, Network, takes

inception_v4_arg_scope = inception_arg_scope


def _halving_conv(place: str, filters: int) -> Layer:
    return conv(place, 3, 3, filters, stride=2, padding="VALID")


def _stem_4a() -> Layer:
    """Two branches without padding, one with a 7x7 convolution in two factors (figure 3)."""
    return branches(
        chain(conv("0a", 1, 1, 64), conv("1a", 3, 3, 96, padding="VALID")),
        chain(
            conv("0a", 1, 1, 64),
            conv("0b", 1, 7, 64),
            conv("0c", 7, 1, 64),
            conv("1a", 3, 3, 96, padding="VALID"),
        ),
    )


def block_inception_a(inputs: Any, scope: str | None = None, reuse: bool | None = None) -> Any:
    """Inception-A: 35 x 35 x 384 to the same (figure 4).

    Args:
      inputs: `[batch, height, width, channels]` float32.
      scope: variable scope, `BlockInceptionA` if None.
      reuse: whether to take existing variables.

    Returns:
      `[batch, height, width, 384]`.
    """
    layer = branches(
        conv("0a", 1, 1, 96),
        chain(conv("0a", 1, 1, 64), conv("0b", 3, 3, 96)),
        chain(conv("0a", 1, 1, 64), conv("0b", 3, 3, 96), conv("0c", 3, 3, 96)),
        chain(avg_pool(), conv("0b", 1, 1, 96)),
    )
    return _in_block(layer, inputs, scope, "BlockInceptionA", reuse)


def block_reduction_a(inputs: Any, scope: str | None = None, reuse: bool | None = None) -> Any:
    """Reduction-A: 35 x 35 x 384 to 17 x 17 x 1024 (figure 7).

    Args:
      inputs: `[batch, height, width, channels]` float32.
      scope: variable scope, `BlockReductionA` if None.
      reuse: whether to take existing variables.

    Returns:
      `[batch, (height - 1) // 2, (width - 1) // 2, channels + 640]`.
    """
    layer = branches(
        _halving_conv("1a", 384),
        chain(conv("0a", 1, 1, 192), conv("0b", 3, 3, 224), _halving_conv("1a", 256)),
        max_pool("1a", 2),
    )
    return _in_block(layer, inputs, scope, "BlockReductionA", reuse)


def block_inception_b(inputs: Any, scope: str | None = None, reuse: bool | None = None) -> Any:
    """Inception-B: 17 x 17 x 1024 to the same (figure 5).

    Args:
      inputs: `[batch, height, width, channels]` float32.
      scope: variable scope, `BlockInceptionB` if None.
      reuse: whether to take existing variables.

    Returns:
      `[batch, height, width, 1024]`.
    """
    layer = branches(
        conv("0a", 1, 1, 384),
        chain(conv("0a", 1, 1, 192), conv("0b", 1, 7, 224), conv("0c", 7, 1, 256)),
        chain(
            conv("0a", 1, 1, 192),
            conv("0b", 7, 1, 192),
            conv("0c", 1, 7, 224),
            conv("0d", 7, 1, 224),
            conv("0e", 1, 7, 256),
        ),
        chain(avg_pool(), conv("0b", 1, 1, 128)),
    )
    return _in_block(layer, inputs, scope, "BlockInceptionB", reuse)


def block_reduction_b(inputs: Any, scope: str | None = None, reuse: bool | None = None) -> Any:
    """Reduction-B: 17 x 17 x 1024 to 8 x 8 x 1536 (figure 8).

    Args:
      inputs: `[batch, height, width, channels]` float32.
      scope: variable scope, `BlockReductionB` if None.
      reuse: whether to take existing variables.

    Returns:
      `[batch, (height - 1) // 2, (width - 1) // 2, channels + 512]`.
    """
    layer = branches(
        chain(conv("0a", 1, 1, 192), _halving_conv("1a", 192)),
        chain(
            conv("0a", 1, 1, 256),
            conv("0b", 1, 7, 256),
            conv("0c", 7, 1, 320),
            _halving_conv("1a", 320),
        ),
        max_pool("1a", 2),
    )
    return _in_block(layer, inputs, scope, "BlockReductionB", reuse)


def block_inception_c(inputs: Any, scope: str | None = None, reuse: bool | None = None) -> Any:
    """Inception-C: 8 x 8 x 1536 to the same (figure 6).

    Args:
      inputs: `[batch, height, width, channels]` float32.
      scope: variable scope, `BlockInceptionC` if None.
      reuse: whether to take existing variables.

    Returns:
      `[batch, height, width, 1536]`.
    """
    layer = branches(
        conv("0a", 1, 1, 256),
        chain(conv("0a", 1, 1, 384), concat(conv("0b", 1, 3, 256), conv("0c", 3, 1, 256))),
        chain(
            conv("0a", 1, 1, 384),
            conv("0b", 3, 1, 448),
            conv("0c", 1, 3, 512),
            concat(conv("0d", 1, 3, 256), conv("0e", 3, 1, 256)),
        ),
        chain(avg_pool(), conv("0b", 1, 1, 256)),
    )
    return _in_block(layer, inputs, scope, "BlockInceptionC", reuse)


def _in_block(layer: Layer, inputs: Any, scope: str | None, default: str, reuse: Any) -> Any:
    with _keeping_sizes(), tf.variable_scope(scope, default, [inputs], reuse=reuse):
        return layer(inputs)


def _keeping_sizes() -> Any:
    """Returns the arg scope in which layers keep the size of the map unless they say otherwise."""
    return slim.arg_scope([slim.conv2d, slim.max_pool2d, slim.avg_pool2d], stride=1, padding="SAME")


def _blocks(block: Callable[..., Any], *names: str) -> dict[str, Layer]:
    """Returns the block once for each name, in the scope of that name."""
    return {name: functools.partial(block, scope=name) for name in names}


_STEPS: dict[str, Layer] = {
    "Conv2d_1a_3x3": _halving_conv("1a", 32),
    "Conv2d_2a_3x3": conv("2a", 3, 3, 32, padding="VALID"),
    "Conv2d_2b_3x3": conv("2b", 3, 3, 64),
    "Mixed_3a": in_scope("Mixed_3a", branches(max_pool("0a", 2), _halving_conv("0a", 96))),
    "Mixed_4a": in_scope("Mixed_4a", _stem_4a()),
    "Mixed_5a": in_scope("Mixed_5a", branches(_halving_conv("1a", 192), max_pool("1a", 2))),
    **_blocks(block_inception_a, *(f"Mixed_5{letter}" for letter in "bcde")),
    **_blocks(block_reduction_a, "Mixed_6a"),
    **_blocks(block_inception_b, *(f"Mixed_6{letter}" for letter in "bcdefgh")),
    **_blocks(block_reduction_b, "Mixed_7a"),
    **_blocks(block_inception_c, *(f"Mixed_7{letter}" for letter in "bcd")),
}


def inception_v4_base(
    inputs: Any, final_endpoint: str = "Mixed_7d", scope: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception-v4 without its heads.

    Args:
      inputs: images `[batch, height, width, channels]` float32.
      final_endpoint: the last end point to build; one of `Conv2d_1a_3x3`, `Conv2d_2a_3x3`,
        `Conv2d_2b_3x3`, `Mixed_3a`, `Mixed_4a`, `Mixed_5a` to `Mixed_5e`, `Mixed_6a` to
        `Mixed_6h` and `Mixed_7a` to `Mixed_7d`.
      scope: variable scope, `InceptionV4` if None.

    Returns:
      The feature map of `final_endpoint`, `[batch, 8, 8, 1536]` for the default and 299 x 299
      images, and the end points by name.

    Raises:
      ValueError: if there is no such `final_endpoint`.
    """
    with tf.variable_scope(scope, "InceptionV4", [inputs]), _keeping_sizes():
        return run_steps(inputs, _STEPS, final_endpoint)


@takes(Images(size=299, smallest=smallest_image, other_channels=True))
def inception_v4(
    inputs: Any,
    num_classes: int | None = 1001,
    is_training: bool = True,
    dropout_keep_prob: float = 0.8,
    reuse: bool | None = None,
    scope: str = "InceptionV4",
    create_aux_logits: bool = True,
) -> tuple[Any, dict[str, Any]]:
    """Builds Inception-v4.

    Args:
      inputs: images `[batch, height, width, channels]` float32, at least 107 x 107, or 75 x 75
        without auxiliary logits; designed for 299 x 299.
      num_classes: width of the logits; 0 or None returns the features before them.
      is_training: whether dropout is active and batch normalization uses the batch.
      dropout_keep_prob: share of the 1536 features that dropout keeps.
      reuse: whether to take existing variables.
      scope: variable scope.
      create_aux_logits: whether to build the auxiliary head on `Mixed_6h`. Its weights depend on
        the image size.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1, 1, 1536]`; and the end points of
      `inception_v4_base`, `AuxLogits`, `global_pool`, `PreLogitsFlatten`, `Logits` and
      `Predictions` (without classes only `global_pool` of these).

    Raises:
      ValueError: if `inputs` has another rank, unknown channels or is too small, `num_classes` is
        negative, or auxiliary logits are to be built for images of unknown size.
    """
    with (
        tf.variable_scope(scope, "InceptionV4", [inputs], reuse=reuse) as variable_scope,
        slim.arg_scope([slim.batch_norm, slim.dropout], is_training=is_training),
    ):
        net, end_points = inception_v4_base(inputs, scope=variable_scope)
        if create_aux_logits and num_classes:
            end_points["AuxLogits"] = auxiliary_head(
                end_points["Mixed_6h"], num_classes, "AvgPool_1a_5x5", "Conv2d_2a", "Aux_logits"
            )

        def features(net: Any) -> Any:
            net = slim.dropout(net, dropout_keep_prob, scope="Dropout_1b")
            return slim.flatten(net, scope="PreLogitsFlatten")

        net = classification_head(net, num_classes, end_points, "AvgPool_1a", features)
        return net, end_points


NETWORKS = {"inception_v4": Network(inception_v4, inception_v4_arg_scope)}
