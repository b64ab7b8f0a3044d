"""VGG: configurations A, D (16 layers) and E (19 layers).

K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition",
https://arxiv.org/abs/1409.1556, table 1.
"""

from collections.abc import Mapping
from typing import Any

from model_deploy import slim
from nets.parts.dense_head import DenseHead, EndPoints, arg_scope
from nets.parts.network import Images, Network, check_choice, takes

_WIDTHS = (64, 128, 256, 512, 512)
# Convolutions of each width, by the name that is also the scope of a network that is given none.
_DEPTHS = {"vgg_a": (1, 1, 2, 2, 2), "vgg_16": (2, 2, 3, 3, 3), "vgg_19": (2, 2, 4, 4, 4)}


def _smallest(arguments: Mapping[str, Any]) -> int:
    """Five poolings must leave the 7 x 7 map that `fc6` takes, or with padding any map."""
    return 32 if arguments["fc_conv_padding"] == "SAME" else 224


@takes(Images(size=224, smallest=_smallest, other_channels=True))
def vgg_a(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "vgg_a",
    fc_conv_padding: str = "VALID",
    global_pool: bool = False,
) -> tuple[Any, EndPoints]:
    """Builds VGG A: 11 layers, 1, 1, 2, 2 and 2 convolutions; the rest is as in `vgg_16`."""
    head = DenseHead(num_classes, is_training, dropout_keep_prob, spatial_squeeze, global_pool)
    return _vgg(inputs, "vgg_a", head, fc_conv_padding, scope, reuse)


@takes(Images(size=224, smallest=_smallest, other_channels=True))
def vgg_16(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "vgg_16",
    fc_conv_padding: str = "VALID",
    global_pool: bool = False,
) -> tuple[Any, EndPoints]:
    """Builds VGG D: 16 layers, five groups of 2, 2, 3, 3 and 3 convolutions, three dense layers.

    Args:
      inputs: `[batch, height, width, channels]` float32; designed for 224 x 224, which is also the
        least with `fc_conv_padding='VALID'`; 32 x 32 with `'SAME'`.
      num_classes: width of the logits; 0 or None returns `fc7`, the layer before them.
      is_training: whether dropout is active.
      dropout_keep_prob: share of the features that dropout keeps, after `fc6` and `fc7`.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      reuse: whether to use the variables of an earlier call.
      scope: variable scope.
      fc_conv_padding: padding of `fc6`. `'SAME'` gives logits for every 32 x 32 pixels.
      global_pool: whether to average `fc7` over height and width, for other image sizes.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, height, width, num_classes]` without the squeeze;
      and the end points: `<scope>/` and `conv1/conv1_1`, ..., `pool1`, ..., `pool5`, `fc6`, `fc7`,
      `fc8`; and `global_pool`, if asked for.

    Raises:
      ValueError: if `inputs` has another rank, an unknown channel count or is too small,
        `num_classes` is negative, `fc_conv_padding` is neither of the two, or `spatial_squeeze`
        meets logits of more than one position.
    """
    head = DenseHead(num_classes, is_training, dropout_keep_prob, spatial_squeeze, global_pool)
    return _vgg(inputs, "vgg_16", head, fc_conv_padding, scope, reuse)


@takes(Images(size=224, smallest=_smallest, other_channels=True))
def vgg_19(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    reuse: bool | None = None,
    scope: str | None = "vgg_19",
    fc_conv_padding: str = "VALID",
    global_pool: bool = False,
) -> tuple[Any, EndPoints]:
    """Builds VGG E: 19 layers, 2, 2, 4, 4 and 4 convolutions; the rest is as in `vgg_16`."""
    head = DenseHead(num_classes, is_training, dropout_keep_prob, spatial_squeeze, global_pool)
    return _vgg(inputs, "vgg_19", head, fc_conv_padding, scope, reuse)


def _vgg(
    inputs: Any,
    name: str,
    head: DenseHead,
    padding: str,
    scope: str | None,
    reuse: bool | None,
) -> tuple[Any, EndPoints]:
    check_choice("fc_conv_padding", padding, ("VALID", "SAME"))

    def features(net: Any, head: DenseHead) -> Any:
        for group, (depth, width) in enumerate(zip(_DEPTHS[name], _WIDTHS, strict=True), start=1):
            net = slim.repeat(net, depth, slim.conv2d, width, [3, 3], scope=f"conv{group}")
            net = slim.max_pool2d(net, [2, 2], scope=f"pool{group}")
        net = head.dropout(head.dense(net, 4096, kernel=7, number=6, padding=padding), 6)
        return head.dense(net, 4096, kernel=1, number=7)

    return head.build(inputs, features, scope, name, reuse)


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the arg scope of VGG: L2 on all weights, ReLU, biases that start at zero."""
    return arg_scope(weight_decay)


# Other names of the configurations D and E, from the paper.
vgg_d = vgg_16
vgg_e = vgg_19

NETWORKS = {
    "vgg_a": Network(vgg_a, vgg_arg_scope),
    "vgg_16": Network(vgg_16, vgg_arg_scope),
    "vgg_19": Network(vgg_19, vgg_arg_scope),
}
