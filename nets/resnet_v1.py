"""ResNet v1: residual units that normalize after each convolution.

K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition",
https://arxiv.org/abs/1512.03385, table 1.
"""

import math
import numbers
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.depth import scaled
from nets.parts.network import Images, Network, check_at_least, takes
from nets.resnet_utils import (
    NoOpScope,  # noqa: F401 - programs take it from here
    Options,
    Version,
    block,
    build,
    conv2d_same,
    four_blocks,
    resnet_arg_scope,
    subsample,
)

EndPoints = dict[str, Any]


@slim.add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: str | None = None,
    scope: str | None = None,
    use_bounded_activations: bool = False,
) -> Any:
    """Builds a residual unit: 1x1, 3x3 and 1x1 convolutions, added to their input.

    The input is subsampled for the sum, and projected where it has another depth.

    Args:
      inputs: `[batch, height, width, channels]` float32.
      depth: channels of the output.
      depth_bottleneck: channels between the convolutions.
      stride: of the 3x3 convolution.
      rate: its dilation.
      outputs_collections: collection that gets the output, by scope.
      scope: variable scope.
      use_bounded_activations: whether activations stay within 6, which suits integer arithmetic:
        ReLU6 after the projection and the sum, and what is added to the input within -6 and 6.

    Returns:
      `[batch, height / stride, width / stride, depth]` float32, sizes rounded up.
    """
    bounded = use_bounded_activations
    with tf.variable_scope(scope, "bottleneck_v1", [inputs]) as opened:
        if inputs.shape.as_list()[3] == depth:
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            activation = tf.nn.relu6 if bounded else None
            shortcut = slim.conv2d(
                inputs, depth, [1, 1], stride=stride, activation_fn=activation, scope="shortcut"
            )
        residual = slim.conv2d(inputs, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = slim.conv2d(residual, depth, [1, 1], stride=1, activation_fn=None, scope="conv3")
        if bounded:
            output = tf.nn.relu6(shortcut + tf.clip_by_value(residual, -6.0, 6.0))
        else:
            output = tf.nn.relu(shortcut + residual)
        return slim.utils.collect_named_outputs(outputs_collections, opened.name, output)


_VERSION = Version("resnet_v1", bottleneck, normalizes_first=False)


def resnet_v1_block(scope: str, base_depth: int, num_units: int, stride: int) -> Any:
    """Returns a block of `num_units` bottlenecks; the last one has the stride.

    Args:
      scope: of the block.
      base_depth: channels inside a bottleneck, a fourth of those of its output.
      num_units: number of bottlenecks.
      stride: of the last one.
    """
    return block(_VERSION, scope, base_depth, num_units, stride)


@takes(Images(size=224, other_channels=True))
def resnet_v1(
    inputs: Any,
    blocks: Sequence[Any],
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    spatial_squeeze: bool = True,
    store_non_strided_activations: bool = False,
    reuse: bool | None = None,
    scope: str | None = None,
) -> tuple[Any, EndPoints]:
    """Builds a ResNet v1 of any blocks.

    Args:
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224.
      blocks: what `resnet_v1_block` returns.
      num_classes: width of the logits; 0 or None returns the features.
      is_training: whether batch normalization uses the batch; None leaves it to the arg scope.
      global_pool: whether to average over height and width.
      output_stride: pixels of the image per position of the last feature map: 4, 8, 16 or, the
        default, 32. Smaller strides dilate the later convolutions.
      include_root_block: whether to begin with the 7x7 convolution and the pooling, of stride 4.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      store_non_strided_activations: whether the end point of a block is its output before the
        stride of its last unit, for dense prediction.
      reuse: whether to use the variables of an earlier call.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, height, width, num_classes]` without the squeeze,
      or features `[batch, height, width, channels]`; and the end points: every convolution, unit
      and block by scope, such as `<scope>/block1/unit_1/bottleneck_v1/conv1`; `global_pool`; and
      with classes `<scope>/logits`, `<scope>/spatial_squeeze`, `predictions`.

    Raises:
      ValueError: if `inputs` has another rank, an unknown channel count or no pixel,
        `num_classes` is negative, `output_stride` is not the stride of some unit, or
        `spatial_squeeze` meets logits of more than one position.
    """
    options = Options(
        num_classes,
        is_training,
        global_pool,
        output_stride,
        spatial_squeeze,
        store_non_strided_activations,
        include_root_block,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


def _blocks(
    depths: tuple[int, int, int, int], depth_multiplier: float, min_base_depth: int
) -> list[Any]:
    number = isinstance(depth_multiplier, numbers.Real)
    if not (number and 0 <= float(depth_multiplier) < math.inf):
        raise ValueError(
            f"depth_multiplier must be a number of at least 0, got {depth_multiplier!r}"
        )
    check_at_least("min_base_depth", min_base_depth, 1)
    base_depths = [scaled(depth, depth_multiplier, min_base_depth) for depth in (64, 128, 256, 512)]
    return four_blocks(_VERSION, depths, base_depths)


@takes(Images(size=224, other_channels=True))
def resnet_v1_50(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    store_non_strided_activations: bool = False,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str | None = "resnet_v1_50",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-50, (3, 4, 6, 3) units in its blocks; see `resnet_v1`.

    `depth_multiplier` scales the blocks' channels, to at least `min_base_depth` in a bottleneck.
    """
    blocks = _blocks((3, 4, 6, 3), depth_multiplier, min_base_depth)
    options = Options(
        num_classes,
        is_training,
        global_pool,
        output_stride,
        spatial_squeeze,
        store_non_strided_activations,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v1_101(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    store_non_strided_activations: bool = False,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str | None = "resnet_v1_101",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-101, (3, 4, 23, 3) units in its blocks; see `resnet_v1`.

    `depth_multiplier` scales the blocks' channels, to at least `min_base_depth` in a bottleneck.
    """
    blocks = _blocks((3, 4, 23, 3), depth_multiplier, min_base_depth)
    options = Options(
        num_classes,
        is_training,
        global_pool,
        output_stride,
        spatial_squeeze,
        store_non_strided_activations,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v1_152(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    store_non_strided_activations: bool = False,
    spatial_squeeze: bool = True,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str | None = "resnet_v1_152",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-152, (3, 8, 36, 3) units in its blocks; see `resnet_v1`.

    `depth_multiplier` scales the blocks' channels, to at least `min_base_depth` in a bottleneck.
    """
    blocks = _blocks((3, 8, 36, 3), depth_multiplier, min_base_depth)
    options = Options(
        num_classes,
        is_training,
        global_pool,
        output_stride,
        spatial_squeeze,
        store_non_strided_activations,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v1_200(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    store_non_strided_activations: bool = False,
    spatial_squeeze: bool = True,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str | None = "resnet_v1_200",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-200, (3, 24, 36, 3) units in its blocks; see `resnet_v1`.

    `depth_multiplier` scales the blocks' channels, to at least `min_base_depth` in a bottleneck.
    """
    blocks = _blocks((3, 24, 36, 3), depth_multiplier, min_base_depth)
    options = Options(
        num_classes,
        is_training,
        global_pool,
        output_stride,
        spatial_squeeze,
        store_non_strided_activations,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


NETWORKS = {
    "resnet_v1_50": Network(resnet_v1_50, resnet_arg_scope),
    "resnet_v1_101": Network(resnet_v1_101, resnet_arg_scope),
    "resnet_v1_152": Network(resnet_v1_152, resnet_arg_scope),
    "resnet_v1_200": Network(resnet_v1_200, resnet_arg_scope),
}
