"""ResNet v2: residual units that normalize their input.

K. He, X. Zhang, S. Ren, J. Sun, "Identity Mappings in Deep Residual Networks",
https://arxiv.org/abs/1603.05027. The units are tf-slim's.
"""

from collections.abc import Sequence
from typing import Any

from tf_slim.nets.resnet_v2 import bottleneck

from nets.parts.network import Images, Network, takes
from nets.resnet_utils import Options, Version, block, build, four_blocks, resnet_arg_scope

EndPoints = dict[str, Any]

_VERSION = Version("resnet_v2", bottleneck, normalizes_first=True)


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Any:
    """Returns a block of `num_units` bottlenecks; the last one has the stride.

    Args:
      scope: of the block.
      base_depth: channels inside a bottleneck, a fourth of those of its output.
      num_units: number of bottlenecks.
      stride: of the last one.
    """
    return block(_VERSION, scope, base_depth, num_units, stride)


@takes(Images(size=224, other_channels=True))
def resnet_v2(
    inputs: Any,
    blocks: Sequence[Any],
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = None,
) -> tuple[Any, EndPoints]:
    """Builds a ResNet v2 of any blocks.

    Args:
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224.
      blocks: what `resnet_v2_block` returns.
      num_classes: width of the logits; 0 or None returns the features.
      is_training: whether batch normalization uses the batch; None leaves it to the arg scope.
      global_pool: whether to average over height and width.
      output_stride: pixels of the image per position of the last feature map: 4, 8, 16 or, the
        default, 32. Smaller strides dilate the later convolutions.
      include_root_block: whether to begin with the 7x7 convolution and the pooling, of stride 4.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      reuse: whether to use the variables of an earlier call.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, height, width, num_classes]` without the squeeze,
      or features `[batch, height, width, channels]`; and the end points: every convolution, unit
      and block by scope, such as `<scope>/block1/unit_1/bottleneck_v2/conv1`; `global_pool`; and
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
        include_root_block=include_root_block,
    )
    return build(inputs, blocks, _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v2_50(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "resnet_v2_50",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-50, (3, 4, 6, 3) units in its blocks; see `resnet_v2`."""
    options = Options(num_classes, is_training, global_pool, output_stride, spatial_squeeze)
    return build(inputs, four_blocks(_VERSION, (3, 4, 6, 3)), _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v2_101(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "resnet_v2_101",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-101, (3, 4, 23, 3) units in its blocks; see `resnet_v2`."""
    options = Options(num_classes, is_training, global_pool, output_stride, spatial_squeeze)
    return build(inputs, four_blocks(_VERSION, (3, 4, 23, 3)), _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v2_152(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "resnet_v2_152",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-152, (3, 8, 36, 3) units in its blocks; see `resnet_v2`."""
    options = Options(num_classes, is_training, global_pool, output_stride, spatial_squeeze)
    return build(inputs, four_blocks(_VERSION, (3, 8, 36, 3)), _VERSION, options, scope, reuse)


@takes(Images(size=224, other_channels=True))
def resnet_v2_200(
    inputs: Any,
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "resnet_v2_200",
) -> tuple[Any, EndPoints]:
    """Builds ResNet-200, (3, 24, 36, 3) units in its blocks; see `resnet_v2`."""
    options = Options(num_classes, is_training, global_pool, output_stride, spatial_squeeze)
    return build(inputs, four_blocks(_VERSION, (3, 24, 36, 3)), _VERSION, options, scope, reuse)


NETWORKS = {
    "resnet_v2_50": Network(resnet_v2_50, resnet_arg_scope),
    "resnet_v2_101": Network(resnet_v2_101, resnet_arg_scope),
    "resnet_v2_152": Network(resnet_v2_152, resnet_arg_scope),
    "resnet_v2_200": Network(resnet_v2_200, resnet_arg_scope),
}
