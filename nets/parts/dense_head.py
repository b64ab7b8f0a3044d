"""How AlexNet, OverFeat and VGG end: in dense layers, built as convolutions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.squeeze import squeeze_pixel

EndPoints = dict[str, Any]


def arg_scope(weight_decay: float, first_bias: float = 0.0) -> Any:
    """Returns an arg scope: L2 on all weights, ReLU, biases that start at `first_bias`.

    Convolutions are padded, poolings are not. It is for the layers that a program adds, too: those
    may be `slim.fully_connected`.
    """
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            activation_fn=tf.nn.relu,
            biases_initializer=tf.constant_initializer(first_bias),
            weights_regularizer=slim.l2_regularizer(weight_decay),
        ),
        slim.arg_scope([slim.conv2d], padding="SAME"),
        slim.arg_scope([slim.max_pool2d], padding="VALID") as scope,
    ):
        return scope


class DenseHead(NamedTuple):
    """How AlexNet, OverFeat and VGG end: fully connected layers, as convolutions.

    They slide over the feature maps of images larger than the network was designed for. The
    first fields are the networks' arguments of the same names.

    Attributes:
      weights_initializer: of the layers, whose biases then start at 0.1; None leaves both to the
        arg scope.
    """

    num_classes: int | None
    is_training: bool
    dropout_keep_prob: float
    spatial_squeeze: bool
    global_pool: bool
    weights_initializer: Any = None

    def dense(self, net: Any, width: int, kernel: int, number: int, padding: str = "VALID") -> Any:
        """Returns the layer `fc<number>` of `width` channels."""
        starts = self._start_of_weights()
        if starts:
            starts["biases_initializer"] = tf.constant_initializer(0.1)
        return slim.conv2d(
            net,
            width,
            [kernel, kernel],
            padding=padding,
            scope=f"fc{number}",
            **starts,
        )

    def dropout(self, net: Any, number: int) -> Any:
        """Returns `net` after dropout, in training."""
        return slim.dropout(
            net,
            self.dropout_keep_prob,
            is_training=self.is_training,
            scope=f"dropout{number}",
        )

    def build(
        self,
        images: Any,
        features: Callable[[Any, "DenseHead"], Any],
        scope: str | None,
        default_scope: str,
        reuse: bool | None = None,
    ) -> tuple[Any, EndPoints]:
        """Builds a whole network: `features(images, self)` makes the layers up to `fc7`.

        Without a `scope` it is in a new one that is called after `default_scope`. Every output is
        added to the collection `<scope>/_end_points`.

        Returns:
          The logits, or without classes `fc7` (its mean over height and width with
          `global_pool`); and the end points, the output of every layer by scope.
        """
        with tf.variable_scope(scope, default_scope, [images], reuse=reuse) as opened:
            collection = opened.original_name_scope + "_end_points"
            with slim.arg_scope([slim.conv2d, slim.max_pool2d], outputs_collections=collection):
                net = features(images, self)
                end_points = slim.utils.convert_collection_to_dict(collection)
                if self.global_pool:
                    net = tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
                    end_points["global_pool"] = net
                if self.num_classes:
                    net = self._logits(net)
                    end_points[f"{opened.name}/fc8"] = net
            return net, end_points

    def _start_of_weights(self) -> dict[str, Any]:
        if self.weights_initializer is None:
            return {}
        return {"weights_initializer": self.weights_initializer}

    def _logits(self, net: Any) -> Any:
        net = slim.conv2d(
            self.dropout(net, 7),
            self.num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            biases_initializer=tf.zeros_initializer(),
            scope="fc8",
            **self._start_of_weights(),
        )
        return squeeze_pixel(net, [1, 2], name="fc8/squeezed") if self.spatial_squeeze else net
