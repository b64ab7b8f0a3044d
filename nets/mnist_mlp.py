"""The network of the distributed MNIST tutorial: one hidden layer of 500 units.

Y. LeCun et al., "Gradient-based learning applied to document recognition" (1998), section III-C,
has networks of this form: 28x28-300-10 and 28x28-1000-10.
"""

from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.network import Images, Network, takes

_HIDDEN = 500


@takes(Images(size=28))
def mnist_mlp(
    images: Any,
    num_classes: int | None = 10,
    is_training: bool = False,
    scope: str = "mnist_mlp",
) -> tuple[Any, dict[str, Any]]:
    """Builds a hidden layer of 500 rectified units and a linear classifier.

    Args:
      images: `[batch, height, width, 1 or 3]` float32 of known size; designed for 28 x 28 x 1,
        which gives the layers 784-500-10.
      num_classes: width of the logits; 0 or None returns the hidden layer.
      is_training: taken for the table's sake; the network is the same in training.
      scope: variable scope.

    Returns:
      Logits `[batch, num_classes]`, or features `[batch, 500]`; and the end points `Flatten`,
      `hidden`, and with classes `Logits` and `Predictions`.

    Raises:
      ValueError: if `images` has another rank or channel count, an unknown height or width, or
        `num_classes` is negative.
    """
    del is_training
    if not images.shape[1:].is_fully_defined():
        shape = tuple(images.shape.as_list())
        raise ValueError(f"images must have a known height and width, got shape {shape}")
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "mnist_mlp", [images]):
        net = end_points["Flatten"] = slim.flatten(images)
        net = end_points["hidden"] = slim.fully_connected(net, _HIDDEN, scope="hidden")
        if not num_classes:
            return net, end_points
        logits = slim.fully_connected(net, num_classes, activation_fn=None, scope="logits")
    end_points["Logits"] = logits
    end_points["Predictions"] = slim.softmax(logits, scope="Predictions")
    return logits, end_points


def mnist_mlp_arg_scope(weight_decay: float = 0.0005) -> Any:
    """Returns the arg scope of `mnist_mlp`: L2 on all weights, ReLU, He initial values."""
    with slim.arg_scope(
        [slim.fully_connected],
        activation_fn=tf.nn.relu,
        weights_initializer=slim.variance_scaling_initializer(),
        weights_regularizer=slim.l2_regularizer(weight_decay),
    ) as scope:
        return scope


NETWORKS = {"mnist_mlp": Network(mnist_mlp, mnist_mlp_arg_scope)}
