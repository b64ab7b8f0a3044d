"""OverFeat, the fast model.

P. Sermanet, D. Eigen, X. Zhang, M. Mathieu, R. Fergus, Y. LeCun, "OverFeat: Integrated
Recognition, Localization and Detection using Convolutional Networks",
https://arxiv.org/abs/1312.6229, with 64 channels in the first layer.
"""

from typing import Any

from model_deploy import slim
from nets.parts.dense_head import DenseHead, EndPoints, arg_scope
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, takes


@takes(Images(size=231, smallest=231, other_channels=True))
def overfeat(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str | None = "overfeat",
    global_pool: bool = False,
) -> tuple[Any, EndPoints]:
    """Builds OverFeat: five convolutions, three of them pooled, and three dense layers.

    Args:
      inputs: `[batch, height, width, channels]` float32, at least 231 x 231, its designed size.
      num_classes: width of the logits; 0 or None returns `fc7`, the layer before them.
      is_training: whether dropout is active.
      dropout_keep_prob: share of the features that dropout keeps, after `fc6` and `fc7`.
      spatial_squeeze: whether to remove the logits' height and width of 1.
      scope: variable scope.
      global_pool: whether to average `fc7` over height and width, for larger images.

    Returns:
      Logits `[batch, num_classes]`, or `[batch, height, width, num_classes]` without the squeeze;
      and the end points: `<scope>/` and `conv1`, `pool1`, `conv2`, `pool2`, `conv3`, `conv4`,
      `conv5`, `pool5`, `fc6`, `fc7`, `fc8`; and `global_pool`, if asked for.

    Raises:
      ValueError: if `inputs` has another rank, an unknown channel count or is too small,
        `num_classes` is negative, or `spatial_squeeze` meets logits of more than one position.
    """
    start = trunc_normal(0.005)
    head = DenseHead(
        num_classes, is_training, dropout_keep_prob, spatial_squeeze, global_pool, start
    )
    return head.build(inputs, _features, scope, "overfeat")


def _features(net: Any, head: DenseHead) -> Any:
    net = slim.conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
    net = slim.max_pool2d(net, [2, 2], scope="pool2")
    net = slim.conv2d(net, 512, [3, 3], scope="conv3")
    net = slim.conv2d(net, 1024, [3, 3], scope="conv4")
    net = slim.conv2d(net, 1024, [3, 3], scope="conv5")
    net = slim.max_pool2d(net, [2, 2], scope="pool5")
    net = head.dropout(head.dense(net, 3072, kernel=6, number=6), 6)
    return head.dense(net, 4096, kernel=1, number=7)


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the arg scope of `overfeat`: L2 on all weights, ReLU, biases that start at zero."""
    return arg_scope(weight_decay)


NETWORKS = {"overfeat": Network(overfeat, overfeat_arg_scope)}
