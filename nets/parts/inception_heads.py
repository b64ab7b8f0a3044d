"""The ends of Inception-v4 and Inception-ResNet-v2: two heads, and the images that they need.

After C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, "Inception-v4, Inception-ResNet and the Impact
of Residual Connections on Learning" (2016), https://arxiv.org/abs/1602.07261; the auxiliary head
is that of Inception-v3 (https://arxiv.org/abs/1512.00567, figure 8).
"""

from collections.abc import Mapping
from typing import Any

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.branches import Layer

# Below these sizes a VALID convolution, or the pool of the auxiliary head, has no output left.
_SMALLEST = 75
_SMALLEST_WITH_AUXILIARY_HEAD = 107


def smallest_image(arguments: Mapping[str, Any]) -> int:
    """Returns the least height and width for a call of one of the two networks."""
    has_auxiliary_head = arguments["num_classes"] and arguments["create_aux_logits"]
    return _SMALLEST_WITH_AUXILIARY_HEAD if has_auxiliary_head else _SMALLEST


def auxiliary_head(
    net: Any, num_classes: int, pool_scope: str, conv_scope: str, logits_scope: str
) -> Any:
    """Returns logits `[batch, num_classes]` from a feature map in the middle of the network.

    Args:
      net: `[batch, height, width, channels]`, at least 5 x 5, of known size.
      num_classes: width of the logits.
      pool_scope: of the 5 x 5 pool at the start.
      conv_scope: of the convolution that covers the whole pooled map, 5 x 5 for 299 x 299 images.
      logits_scope: of the last layer.

    Raises:
      ValueError: if height or width are unknown; the shape of a weight depends on them.
    """
    shape = tuple(net.shape.as_list())
    if None in shape[1:3]:
        raise ValueError(
            "create_aux_logits must be False for images of unknown height or width, got True and"
            f" a feature map of shape {shape}"
        )
    with tf.variable_scope("AuxLogits"):
        net = slim.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope=pool_scope)
        net = slim.conv2d(net, 128, [1, 1], scope="Conv2d_1b_1x1")
        net = slim.conv2d(net, 768, net.shape.as_list()[1:3], padding="VALID", scope=conv_scope)
        net = slim.flatten(net)
        return slim.fully_connected(net, num_classes, activation_fn=None, scope=logits_scope)


def classification_head(
    net: Any, num_classes: int | None, end_points: dict[str, Any], pool_scope: str, features: Layer
) -> Any:
    """Averages over the map and classifies.

    Args:
      net: `[batch, height, width, channels]`.
      num_classes: width of the logits; 0 or None stops after the average.
      end_points: gets `global_pool` and, with classes, `PreLogitsFlatten`, `Logits` and
        `Predictions`.
      pool_scope: of the average over a map of known size; otherwise it is `global_pool`.
      features: makes `[batch, channels]` of the average, with dropout.

    Returns:
      Logits `[batch, num_classes]`, or the average `[batch, 1, 1, channels]`.
    """
    with tf.variable_scope("Logits"):
        net = end_points["global_pool"] = _average(net, pool_scope)
        if not num_classes:
            return net
        net = end_points["PreLogitsFlatten"] = features(net)
        logits = slim.fully_connected(net, num_classes, activation_fn=None, scope="Logits")
        end_points["Logits"] = logits
        end_points["Predictions"] = tf.nn.softmax(logits, name="Predictions")
        return logits


def _average(net: Any, scope: str) -> Any:
    size = net.shape.as_list()[1:3]
    if None in size:
        return tf.reduce_mean(net, axis=[1, 2], keepdims=True, name="global_pool")
    return slim.avg_pool2d(net, size, padding="VALID", scope=scope)
