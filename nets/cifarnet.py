"""CifarNet, the network of the TensorFlow CIFAR-10 tutorial.

After A. Krizhevsky's cuda-convnet (2012), with local response normalization: section 3.3 of
A. Krizhevsky, I. Sutskever, G. Hinton, "ImageNet Classification with Deep Convolutional Neural
Networks" (2012).
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.initializers import trunc_normal
from nets.parts.network import Images, Network, takes


@takes(Images(size=32, smallest=4, other_channels=True))
def cifarnet(
    images: Any,
    num_classes: int | None = 10,
    is_training: bool = False,
    dropout_keep_prob: float = 0.5,
    prediction_fn: Callable[..., Any] = slim.softmax,
    scope: str | None = "CifarNet",
) -> tuple[Any, dict[str, Any]]:
    """Builds CifarNet: two 5x5 convolutions, pooled and normalized, and three dense layers.

    Args:
      images: `[batch, height, width, channels]` float32, at least 4 x 4; designed for 32 x 32.
      num_classes: width of the logits; 0 or None returns `fc4`, the layer before them.
      is_training: whether dropout is active.
      dropout_keep_prob: share of the 384 features of `fc3` that dropout keeps.
      prediction_fn: makes `Predictions` from the logits.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 192]`; and the end points `conv1`,
      `pool1`, `conv2`, `pool2`, `Flatten`, `fc3`, `fc4`, and with classes `Logits` and
      `Predictions`. The normalizations are none.

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or is too small, or
        `num_classes` is negative.
    """
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "CifarNet", [images]):
        net = end_points["conv1"] = slim.conv2d(images, 64, [5, 5], scope="conv1")
        net = end_points["pool1"] = slim.max_pool2d(net, [2, 2], 2, scope="pool1")
        net = _normalize(net, "norm1")
        net = end_points["conv2"] = slim.conv2d(net, 64, [5, 5], scope="conv2")
        net = _normalize(net, "norm2")
        net = end_points["pool2"] = slim.max_pool2d(net, [2, 2], 2, scope="pool2")
        net = end_points["Flatten"] = slim.flatten(net)
        net = end_points["fc3"] = slim.fully_connected(net, 384, scope="fc3")
        net = slim.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout3")
        net = end_points["fc4"] = slim.fully_connected(net, 192, scope="fc4")
        if not num_classes:
            return net, end_points
        logits = slim.fully_connected(
            net,
            num_classes,
            biases_initializer=tf.zeros_initializer(),
            weights_initializer=trunc_normal(1 / 192),
            weights_regularizer=None,
            activation_fn=None,
            scope="logits",
        )
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def _normalize(net: Any, name: str) -> Any:
    """Divides each value by a power of the squares of the nine channels around it."""
    return tf.nn.lrn(net, depth_radius=4, bias=1.0, alpha=0.001 / 9, beta=0.75, name=name)


def cifarnet_arg_scope(weight_decay: float = 0.004) -> Any:
    """Returns the arg scope of `cifarnet`: L2 on the weights of `fc3` and `fc4` only."""
    with (
        slim.arg_scope(
            [slim.conv2d],
            weights_initializer=trunc_normal(0.05),
            activation_fn=tf.nn.relu,
        ),
        slim.arg_scope(
            [slim.fully_connected],
            biases_initializer=tf.constant_initializer(0.1),
            weights_initializer=trunc_normal(0.04),
            weights_regularizer=slim.l2_regularizer(weight_decay),
            activation_fn=tf.nn.relu,
        ) as scope,
    ):
        return scope


NETWORKS = {"cifarnet": Network(cifarnet, cifarnet_arg_scope)}
