"""ResNet v1: residual units that normalize after each convolution.

K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition",
https://arxiv.org/abs/1512.03385, table 1. The units are tf-slim's.
"""

from collections.abc import Sequence
from typing import Any

from tf_slim.nets import resnet_v1 as slim_resnet_v1

from nets.parts.depth import check_depths, scaled
from nets.parts.network import Images, Network, takes
from nets.resnet_utils import Options, Version, block, build, four_blocks, resnet_arg_scope

EndPoints = dict[str, Any]

_VERSION = Version("resnet_v1", slim_resnet_v1.bottleneck, normalizes_first=False)


def resnet_v1_block(scope: str, base_depth: int, num_units: int, stride: int) -> Any:
    """Returns a block of `num_units` bottlenecks; the last one has the stride.

    Args:
      scope: of the block.
      base_depth: channels inside a bottleneck, a fourth of those of its output.
      num_units: number of bottlenecks.
      stride: of the last one.
    """
    return block(_VERSION, scope, base_depth, num_units, stride)


# Blocks may have any channel count, without the root.
@takes(Images(size=224, channels=()))
def resnet_v1(
    inputs: Any,
    blocks: Sequence[Any],
    num_classes: int | None = None,
    is_training: bool = True,
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
      inputs: `[batch, height, width, 1 or 3]` float32; designed for 224 x 224.
      blocks: what `resnet_v1_block` returns.
      num_classes: width of the logits; 0 or None returns the features.
      is_training: whether batch normalization uses the batch.
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
      ValueError: if `inputs` has another rank, channel count or no pixel, `num_classes` is
        negative, `output_stride` is not the stride of some unit, or `spatial_squeeze` meets
        logits of more than one position.
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
    check_depths(depth_multiplier, min_base_depth)
    base_depths = [scaled(depth, depth_multiplier, min_base_depth) for depth in (64, 128, 256, 512)]
    return four_blocks(_VERSION, depths, base_depths)


@takes(Images(size=224))
def resnet_v1_50(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    store_non_strided_activations: bool = False,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str = "resnet_v1_50",
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


@takes(Images(size=224))
def resnet_v1_101(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    store_non_strided_activations: bool = False,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str = "resnet_v1_101",
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


@takes(Images(size=224))
def resnet_v1_152(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    store_non_strided_activations: bool = False,
    spatial_squeeze: bool = True,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str = "resnet_v1_152",
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


@takes(Images(size=224))
def resnet_v1_200(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    store_non_strided_activations: bool = False,
    spatial_squeeze: bool = True,
    min_base_depth: int = 8,
    depth_multiplier: float = 1,
    reuse: bool | None = None,
    scope: str = "resnet_v1_200",
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
