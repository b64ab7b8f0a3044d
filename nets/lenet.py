"""LeNet, as in the TensorFlow MNIST tutorial.

After Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document
recognition" (1998), with ReLU, max pooling and dropout in place of the original's layers.
"""

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import Images, Network, takes


@takes(Images(size=28, smallest=4, other_channels=True))
def lenet(
    images: Any,
    num_classes: int | None = 10,
    is_training: bool = False,
    dropout_keep_prob: float = 0.5,
    prediction_fn: Callable[..., Any] = slim.softmax,
    scope: str | None = "LeNet",
) -> tuple[Any, dict[str, Any]]:
    """Builds LeNet: two 5x5 convolutions, each pooled, and two fully connected layers.

    Args:
      images: `[batch, height, width, channels]` float32, at least 4 x 4; designed for 28 x 28.
      num_classes: width of the logits; 0 or None returns the layer before them.
      is_training: whether dropout is active.
      dropout_keep_prob: share of the 1024 features that dropout keeps.
      prediction_fn: makes `Predictions` from the logits.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 1024]`; and the end points `conv1`,
      `pool1`, `conv2`, `pool2`, `Flatten`, `fc3`, and with classes `dropout3`, `Logits`,
      `Predictions`.

    Raises:
      ValueError: if `images` has another rank, an unknown channel count or is too small, or
        `num_classes` is negative.
    """
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "LeNet", [images]):
        net = end_points["conv1"] = slim.conv2d(images, 32, [5, 5], scope="conv1")
        net = end_points["pool1"] = slim.max_pool2d(net, [2, 2], 2, scope="pool1")
        net = end_points["conv2"] = slim.conv2d(net, 64, [5, 5], scope="conv2")
        net = end_points["pool2"] = slim.max_pool2d(net, [2, 2], 2, scope="pool2")
        net = end_points["Flatten"] = slim.flatten(net)
        net = end_points["fc3"] = slim.fully_connected(net, 1024, scope="fc3")
        if not num_classes:
            return net, end_points
        net = end_points["dropout3"] = slim.dropout(
            net, dropout_keep_prob, is_training=is_training, scope="dropout3"
        )
        logits = slim.fully_connected(net, num_classes, activation_fn=None, scope="fc4")
    end_points["Logits"] = logits
    end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def lenet_arg_scope(weight_decay: float = 0.0) -> Any:
    """Returns the arg scope of `lenet`: L2 on all weights, truncated normal start of 0.1."""
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        weights_regularizer=slim.l2_regularizer(weight_decay),
        weights_initializer=tf.truncated_normal_initializer(stddev=0.1),
        activation_fn=tf.nn.relu,
    ) as scope:
        return scope


NETWORKS = {"lenet": Network(lenet, lenet_arg_scope)}
