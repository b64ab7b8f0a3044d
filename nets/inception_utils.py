"""What Inception v1, v2, v3 and v4 share: the arg scope, and the head of the first three."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from model_deploy import slim
from nets.parts.kernels import fitting
from nets.parts.squeeze import squeeze_pixel


def inception_arg_scope(
    weight_decay: float = 0.00004,
    use_batch_norm: bool = True,
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    activation_fn: Callable[..., Any] = tf.nn.relu,
    batch_norm_updates_collections: str | None = tf.GraphKeys.UPDATE_OPS,
    batch_norm_scale: bool = False,
) -> Any:
    """Returns the arg scope of Inception v1 to v4.

    Args:
      weight_decay: factor of the L2 losses on the weights of all layers.
      use_batch_norm: whether convolutions are normalized; otherwise they have biases.
      batch_norm_decay: of the moving mean and variance.
      batch_norm_epsilon: added to the variance.
      activation_fn: of the convolutions.
      batch_norm_updates_collections: collection of the moving averages' updates; None updates
        them in place.
      batch_norm_scale: whether normalization has a `gamma`.
    """
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": batch_norm_updates_collections,
        "scale": batch_norm_scale,
    }
    with (
        slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_regularizer=slim.l2_regularizer(weight_decay),
        ),
        slim.arg_scope(
            [slim.conv2d],
            weights_initializer=slim.variance_scaling_initializer(),
            activation_fn=activation_fn,
            normalizer_fn=slim.batch_norm if use_batch_norm else None,
            normalizer_params=normalization if use_batch_norm else {},
        ) as scope,
    ):
        return scope


def fitting_kernel(net: Any, side: int) -> list[int]:
    """Returns a kernel of `side`, cut down to the feature map where that is known and smaller."""
    return fitting([side, side], net.shape.as_list()[1:3])


class PooledHead(NamedTuple):
    """How one version pools its last feature map and classifies it; the defaults are v2 and v3.

    Attributes:
      side: height and width of the average pooling.
      shrinks: whether the pooling is cut down to feature maps smaller than that; its scope then
        ends in the size.
      stride: of the pooling.
      pool: end point of the pooling.
      dropout: scope of the dropout.
      logits: scope of the last convolution.
      keeps_features: whether the features after dropout are the end point `PreLogits`.
      predicts_in_scope: whether the ops of the predictions are in the scope of the logits.
    """

    side: int
    shrinks: bool = True
    stride: int = 2
    pool: str = "AvgPool_1a"
    dropout: str = "Dropout_1b"
    logits: str = "Conv2d_1c_1x1"
    keeps_features: bool = True
    predicts_in_scope: bool = False

    def build(
        self,
        net: Any,
        end_points: dict[str, Any],
        *,
        num_classes: int | None,
        dropout_keep_prob: float,
        prediction_fn: Callable[..., Any],
        spatial_squeeze: bool,
        global_pool: bool,
    ) -> Any:
        """Returns logits, or without classes the pooled features; adds the end points.

        Raises:
          ValueError: if `spatial_squeeze` meets logits of more than one position.
        """
        with tf.variable_scope("Logits"):
            net = self._pooled(net, end_points, global_pool)
            if not num_classes:
                return net
            net = slim.dropout(net, keep_prob=dropout_keep_prob, scope=self.dropout)
            if self.keeps_features:
                end_points["PreLogits"] = net
            logits = slim.conv2d(
                net,
                num_classes,
                [1, 1],
                activation_fn=None,
                normalizer_fn=None,
                scope=self.logits,
            )
            if spatial_squeeze:
                logits = squeeze_pixel(logits, [1, 2])
            end_points["Logits"] = logits
            if self.predicts_in_scope:
                end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
        if not self.predicts_in_scope:
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits

    def _pooled(self, net: Any, end_points: dict[str, Any], global_pool: bool) -> Any:
        if global_pool:
            net = tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
            end_points["global_pool"] = net
            return net
        kernel, scope = [self.side, self.side], self.pool
        if self.shrinks:
            kernel = fitting_kernel(net, self.side)
            scope = f"{self.pool}_{kernel[0]}x{kernel[1]}"
        net = slim.avg_pool2d(net, kernel, self.stride, padding="VALID", scope=scope)
        end_points[self.pool] = net
        return net
