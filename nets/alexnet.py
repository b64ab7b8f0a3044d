"""AlexNet in its one-tower form.

A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks",
https://arxiv.org/abs/1404.5997, without the local response normalization.
"""

from typing import Any

from model_deploy import slim
from nets.parts.dense_head import DenseHead, EndPoints, arg_scope
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, takes


@takes(Images(size=224, smallest=195, other_channels=True))
def alexnet_v2(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: bool = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str | None = "alexnet_v2",
    global_pool: bool = False,
) -> tuple[Any, EndPoints]:
    """Builds AlexNet: five convolutions, three of them pooled, and three dense layers.

    Args:
      inputs: `[batch, height, width, channels]` float32, at least 195 x 195; designed
        for 224 x 224.
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
    return head.build(inputs, _features, scope, "alexnet_v2")


def _features(net: Any, head: DenseHead) -> Any:
    net = slim.conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
    net = slim.max_pool2d(net, [3, 3], 2, scope="pool1")
    net = slim.conv2d(net, 192, [5, 5], scope="conv2")
    net = slim.max_pool2d(net, [3, 3], 2, scope="pool2")
    net = slim.conv2d(net, 384, [3, 3], scope="conv3")
    net = slim.conv2d(net, 384, [3, 3], scope="conv4")
    net = slim.conv2d(net, 256, [3, 3], scope="conv5")
    net = slim.max_pool2d(net, [3, 3], 2, scope="pool5")
    net = head.dropout(head.dense(net, 4096, kernel=5, number=6), 6)
    return head.dense(net, 4096, kernel=1, number=7)


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the arg scope of `alexnet_v2`: L2 on all weights, ReLU, biases that start at 0.1."""
    return arg_scope(weight_decay, first_bias=0.1)


NETWORKS = {"alexnet_v2": Network(alexnet_v2, alexnet_v2_arg_scope)}
