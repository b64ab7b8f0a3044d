"""ResNet-9: eight convolutions and two shortcuts, which learns CIFAR-10 in few epochs.

D. Page, "How to train your ResNet 4: architecture" (2018),
https://myrtle.ai/learn/how-to-train-your-resnet-4-architecture/. Nearly all is computed on many
channels and few positions, which is what matrix units are quick with. As in "How to train your
ResNet 8: bag of tricks" (2019) a pool comes before the batch norm, which has a quarter of the
positions then; and the small one begins, as there, with patches that need no learning.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import Images, Network, check_at_least, takes, wrapped_partial
from nets.parts.patches import patch_features
from nets.resnet_utils import resnet_arg_scope

_LOGITS_SCALE = 0.125
_PATCH = 2  # height and width in pixels
_HAS_UNIT = (True, False, True)  # the three stages


@takes(Images(size=32, smallest=16, other_channels=True))
def resnet_9(
    images: Any,
    num_classes: int | None = 10,
    is_training: bool = False,
    channels: Sequence[int] = (64, 128, 256, 512),
    scope: str = "resnet_9",
) -> tuple[Any, dict[str, Any]]:
    """Builds a convolution, three that halve the size, units behind two of them, a linear layer.

    Args:
      images: `[batch, height, width, channels]` float32, at least 16 x 16; designed for 32 x 32.
      num_classes: width of the logits; 0 or None returns the features.
      is_training: whether batch normalization uses the batch.
      channels: of the first convolution and of the three stages; 0 for the first has
        `patch_features` of 2 x 2 pixels in its place.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, channels[3]]`; and the end points `conv`,
      `stage_1` to `stage_3`, `global_pool`, and with classes `Logits` and `Predictions`.

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or is too small,
        `num_classes` is negative, or `channels` are not four numbers of at least 1 (the first 0).
    """
    if len(channels) != 1 + len(_HAS_UNIT):
        raise ValueError(f"channels must be four numbers, got {channels}")
    first, *stages = channels
    check_at_least("channels", first, 0)
    for depth in stages:
        check_at_least("channels", depth, 1)
    end_points: dict[str, Any] = {}
    with (
        tf.variable_scope(scope, "resnet_9", [images]),
        slim.arg_scope([slim.batch_norm], is_training=is_training),
    ):
        if first:
            net = slim.conv2d(images, first, [3, 3], scope="conv")
        else:
            net = patch_features(images, _PATCH, scope="conv")
        end_points["conv"] = net
        for stage, (depth, has_unit) in enumerate(zip(stages, _HAS_UNIT, strict=True), 1):
            with tf.variable_scope(f"stage_{stage}"):
                net = _halved(net, depth)
                net = _unit(net) if has_unit else net
            end_points[f"stage_{stage}"] = net
        net = end_points["global_pool"] = tf.reduce_max(net, [1, 2], name="global_pool")
        if not num_classes:
            return net, end_points
        net = slim.fully_connected(
            net, num_classes, activation_fn=None, biases_initializer=None, scope="logits"
        )
        logits = end_points["Logits"] = tf.multiply(net, _LOGITS_SCALE, name="scaled_logits")
    end_points["Predictions"] = slim.softmax(logits, scope="Predictions")
    return logits, end_points


def _halved(net: Any, depth: int) -> Any:
    """A convolution and a pool of half the size; normalized, then its positive part."""
    net = slim.conv2d(
        net,
        depth,
        [3, 3],
        normalizer_fn=None,
        biases_initializer=None,
        activation_fn=None,
        scope="conv",
    )
    net = slim.max_pool2d(net, [2, 2], 2, padding="VALID", scope="pool")
    return slim.batch_norm(net, activation_fn=tf.nn.relu, scope="conv/BatchNorm")


def _unit(net: Any) -> Any:
    """Adds to the features what two convolutions make of them."""
    depth = net.shape[-1]
    inner = slim.conv2d(net, depth, [3, 3], scope="unit/conv1")
    return net + slim.conv2d(inner, depth, [3, 3], scope="unit/conv2")


def resnet_9_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the arg scope of `resnet_9`: L2 on all weights, averages over some 100 steps."""
    with (
        slim.arg_scope(resnet_arg_scope(weight_decay, batch_norm_decay=0.99)),
        slim.arg_scope(
            [slim.fully_connected],
            weights_regularizer=slim.l2_regularizer(weight_decay),
            weights_initializer=slim.variance_scaling_initializer(),
        ) as scope,
    ):
        return scope


# A third of the work on each image.
resnet_9_small = wrapped_partial(resnet_9, channels=(0, 64, 256, 256), scope="resnet_9_small")

NETWORKS = {
    "resnet_9": Network(resnet_9, resnet_9_arg_scope),
    "resnet_9_small": Network(resnet_9_small, resnet_9_arg_scope),
}
